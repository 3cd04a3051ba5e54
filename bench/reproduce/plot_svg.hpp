// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plots of the reproduction pages as self-contained SVG: grouped bars and curves, in panels of one size that share the
/// vertical axis.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/draw/svg.hpp>

namespace bench {

/// What a plot says of all its panels.
struct plot_style {
  std::string title;
  std::string note = {};   ///< one line below the title
  std::string unit = "s";  ///< of the vertical axis, as draw::engineering writes it; "" for plain numbers
  bool logarithmic = true;
  std::size_t columns = 2;
};
/// A bar's or curve's colour and its name in the legend.
struct plot_series {
  std::string name;
  hetplan::draw::color fill;
};
/// Bars side by side, one per series; nothing where there is no value.
struct bar_group {
  std::string name;
  std::vector<std::optional<double>> values;
};
struct bar_panel {
  std::string title;
  std::vector<bar_group> groups;
};
/// Points (x, y) of every series, in the order of x.
struct curve_panel {
  std::string title;
  std::string x_axis;
  std::vector<std::vector<std::pair<double, double>>> curves;
};

/// The i-th of the things that are compared; what the page is about gets plot_own.
inline hetplan::draw::color plot_color(std::size_t i) { return hetplan::draw::palette::category_color(i + 1); }
inline const hetplan::draw::color plot_own = hetplan::draw::palette::phase_color(hetplan::phase::forward, 0, 1);

namespace detail {

/// Paper, headings, legend and axes; what is drawn into the panels is the caller's.
class plot {
 public:
  struct area {
    double left, top, width, height;
    [[nodiscard]] double bottom() const { return top + height; }
  };

  plot(plot_style style, const std::vector<plot_series>& series, std::size_t panels, const std::vector<double>& values)
      : style_(std::move(style)), columns_(std::min(style_.columns, std::max<std::size_t>(panels, 1))), panels_(panels) {
    using hetplan::draw::palette::ink;
    find_range(values);
    width_ = margin + static_cast<double>(columns_) * (axis + panel_width) + margin;
    double y = 36;
    out_.text(margin, y, style_.title, {.size = 16, .weight = 600});
    if (!style_.note.empty()) out_.text(margin, y += 20, style_.note, {.fill = hetplan::draw::palette::quiet});
    double x = margin;
    y += 16;
    for (const plot_series& s : series) {
      const double needed = 20 + out_.prose_width(s.name, 11) + 14;
      if (x + needed > width_ - margin) x = margin, y += 19;
      out_.rect(x, y, 13, 11, s.fill.hex(), {}, " rx=\"2\" stroke=\"" + mix(s.fill, ink, 0.35).hex() + "\"");
      out_.text(x + 19, y + 10, s.name);
      x += needed;
    }
    top_ = y + 32;
  }

  /// Frame, title, levels; returns where to draw.
  [[nodiscard]] area panel(std::size_t i, const std::string& title) {
    const auto column = static_cast<double>(i % columns_), line = static_cast<double>(i / columns_);
    const area a{margin + axis + column * (axis + panel_width), top_ + 18 + line * pitch, panel_width, panel_height};
    out_.text(a.left, a.top - 8, title, {.size = 12.5, .weight = 600});
    for (const double v : levels_) {
      const double y = at(a, v);
      out_.line(a.left, y, a.left + a.width, y, hetplan::draw::palette::grid);
      out_.text(a.left - 7, y + 4, value_text(v), {.size = 10, .fill = hetplan::draw::palette::quiet, .anchor = "end"});
    }
    out_.line(a.left, a.bottom(), a.left + a.width, a.bottom(), hetplan::draw::palette::quiet);
    return a;
  }
  [[nodiscard]] double at(const area& a, double value) const {
    const double share = style_.logarithmic ? (std::log10(value) - std::log10(low_)) / (std::log10(high_) - std::log10(low_))
                                            : (value - low_) / (high_ - low_);
    return a.bottom() - a.height * std::clamp(share, 0.0, 1.0);
  }
  [[nodiscard]] std::string value_text(double v) const {
    return style_.unit.empty() ? hetplan::draw::fixed(v, 3) : hetplan::draw::engineering(v, style_.unit);
  }
  [[nodiscard]] hetplan::draw::svg_writer& out() { return out_; }
  [[nodiscard]] std::string document() && {
    const double lines = std::ceil(static_cast<double>(panels_) / static_cast<double>(columns_));
    return std::move(out_).document(width_, top_ + lines * pitch + 8, style_.title);
  }

 private:
  static constexpr double margin = 24, axis = 58, panel_width = 440, panel_height = 170, pitch = 238;

  void find_range(const std::vector<double>& values) {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (const double v : values) {
      if (v > 0) least = std::min(least, v);
      most = std::max(most, v);
    }
    if (!std::isfinite(least)) least = most = 1;
    if (style_.logarithmic) {
      // Half decades: the first below all values, so that the smallest bar still has a height.
      const auto begin = std::floor(2 * std::log10(0.8 * least)), end = std::ceil(2 * std::log10(most));
      low_ = std::pow(10, begin / 2), high_ = std::pow(10, std::max(end, begin + 1) / 2);
      for (double d = std::ceil(begin / 2); d <= end / 2; ++d) levels_.push_back(std::pow(10, d));
    } else {
      const double rough = most / 5, decade = std::pow(10, std::floor(std::log10(rough)));
      const double step = decade * (rough > 5 * decade ? 10 : rough > 2 * decade ? 5 : rough > decade ? 2 : 1);
      low_ = 0, high_ = step * std::ceil(most / step * (1 - 1e-12));
      for (double v = 0; v <= high_ + step / 2; v += step) levels_.push_back(v);
    }
  }

  plot_style style_;
  std::size_t columns_, panels_;
  double width_ = 0, top_ = 0, low_ = 0, high_ = 1;
  std::vector<double> levels_;
  hetplan::draw::svg_writer out_;
};

}  // namespace detail

/// @param missing  stands in the place of a bar without value, such as "OOM".
inline std::string bars_svg(const plot_style& style, const std::vector<plot_series>& series, const std::vector<bar_panel>& panels,
                            const std::string& missing = "OOM") {
  namespace palette = hetplan::draw::palette;
  std::vector<double> values;
  for (const bar_panel& p : panels) {
    for (const bar_group& g : p.groups) {
      for (const auto& v : g.values) values.push_back(v.value_or(0));
    }
  }
  detail::plot page(style, series, panels.size(), values);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto a = page.panel(i, panels[i].title);
    const double room = a.width / static_cast<double>(std::max<std::size_t>(panels[i].groups.size(), 1));
    const double bar = std::min(30.0, 0.86 * room / static_cast<double>(std::max<std::size_t>(series.size(), 1)));
    for (std::size_t g = 0; g < panels[i].groups.size(); ++g) {
      const bar_group& group = panels[i].groups[g];
      const double middle = a.left + (static_cast<double>(g) + 0.5) * room;
      page.out().text(middle, a.bottom() + 17, group.name, {.anchor = "middle"});
      for (std::size_t s = 0; s < group.values.size(); ++s) {
        const double x = middle + (static_cast<double>(s) - 0.5 * static_cast<double>(group.values.size())) * bar;
        const std::string hover = panels[i].title + ", " + group.name + ", " + series[s].name + ": ";
        if (const auto& v = group.values[s]) {
          const double y = page.at(a, *v);
          page.out().rect(x, y, bar - 1.5, a.bottom() - y, series[s].fill.hex(), hover + page.value_text(*v),
                          " stroke=\"" + mix(series[s].fill, palette::ink, 0.35).hex() + "\" stroke-width=\"0.8\"");
        } else {
          const double cx = x + 0.5 * bar + 2.5, cy = a.bottom() - 4;
          page.out().text(cx, cy, missing, {.size = 8.5, .fill = palette::alarm},
                          " transform=\"rotate(-90 " + hetplan::draw::fixed(cx) + " " + hetplan::draw::fixed(cy) + ")\"");
        }
      }
    }
  }
  return std::move(page).document();
}

/// Curves over numbers; the horizontal axis is linear from the least x to the largest, ticks where there are points.
inline std::string curves_svg(const plot_style& style, const std::vector<plot_series>& series, const std::vector<curve_panel>& panels) {
  namespace palette = hetplan::draw::palette;
  std::vector<double> values;
  for (const curve_panel& p : panels) {
    for (const auto& c : p.curves) {
      for (const auto& point : c) values.push_back(point.second);
    }
  }
  detail::plot page(style, series, panels.size(), values);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const auto a = page.panel(i, panels[i].title);
    std::vector<double> ticks;
    for (const auto& c : panels[i].curves) {
      for (const auto& point : c) ticks.push_back(point.first);
    }
    std::sort(ticks.begin(), ticks.end());
    ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
    if (ticks.empty()) continue;
    const double span = std::max(ticks.back() - ticks.front(), 1e-300);
    const auto at_x = [&](double x) { return a.left + 14 + (a.width - 28) * (x - ticks.front()) / span; };
    double free = -std::numeric_limits<double>::infinity();  // where the last number ends
    for (const double x : ticks) {
      page.out().line(at_x(x), a.bottom(), at_x(x), a.bottom() + 4, palette::quiet);
      const std::string text = hetplan::draw::fixed(x, 3);
      const double half = 0.5 * hetplan::draw::svg_writer::text_width(text, 10);
      if (at_x(x) - half < free + 4) continue;
      page.out().text(at_x(x), a.bottom() + 16, text, {.size = 10, .anchor = "middle"});
      free = at_x(x) + half;
    }
    page.out().text(a.left + a.width / 2, a.bottom() + 33, panels[i].x_axis, {.fill = palette::quiet, .anchor = "middle"});
    for (std::size_t s = 0; s < panels[i].curves.size(); ++s) {
      const hetplan::draw::color stroke = mix(series[s].fill, palette::ink, 0.3);
      std::string d;
      for (const auto& [x, y] : panels[i].curves[s]) {
        d += (d.empty() ? "M" : "L") + hetplan::draw::fixed(at_x(x)) + " " + hetplan::draw::fixed(page.at(a, y));
      }
      if (d.empty()) continue;
      page.out().path(d, "none", series[s].name, " stroke=\"" + stroke.hex() + "\" stroke-width=\"1.8\"");
      for (const auto& [x, y] : panels[i].curves[s]) {
        page.out().rect(at_x(x) - 3, page.at(a, y) - 3, 6, 6, series[s].fill.hex(),
                        series[s].name + ", " + hetplan::draw::fixed(x, 3) + ": " + page.value_text(y),
                        " rx=\"3\" stroke=\"" + stroke.hex() + "\"");
      }
    }
  }
  return std::move(page).document();
}

}  // namespace bench
