// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the rows of an adaptation's chart are drawn on: colours, signs, and rows for what changed around the policies.

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/io/adaptation_view.hpp>
#include <hetplan/io/clock_scale.hpp>
#include <hetplan/io/report_time_chart.hpp>

namespace hetplan::io::detail {

/// Colours of the chart. What is hatched has paper-coloured stripes over its colour.
struct adaptation_colors {
  static constexpr color capacity{31, 95, 168}, speed{26, 138, 107}, away{134, 146, 160};
  static constexpr color on_time{31, 95, 168}, late = palette::alarm;
  static constexpr color migrating{214, 106, 18}, stalled = palette::alarm, idle{196, 203, 212}, cut_off = palette::ink;
  [[nodiscard]] static color layout(std::size_t i) { return palette::category_color(i); }
};

/// Patterns that the rows use, once per page.
[[nodiscard]] inline std::string hatch_patterns() {
  const auto pattern = [](std::string_view id, color c) {
    return "<pattern id=\"hetplan-" + std::string(id) +
           "\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" "
           "fill=\"" +
           c.hex() + "\"/><rect width=\"1.6\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.65\"/></pattern>";
  };
  return "<defs>" + pattern("away", adaptation_colors::away) + pattern("migrating", adaptation_colors::migrating) +
         pattern("outage", adaptation_colors::stalled) + pattern("lost", adaptation_colors::cut_off) + "</defs>\n";
}

/// More levels or stretches than this are drawn as a band from least to most with the mean in it.
inline constexpr std::size_t many = 400;

/// How fine the chart is drawn.
struct adaptation_detail {
  double bins_per_pixel = 1;
  std::size_t cells = 60;  ///< spans of a row that explain themselves under the pointer
  std::size_t signs = 60;  ///< of a row; where there are more, one stands for several
  bool zooms = false;      ///< signs keep their shape when the page's script stretches the chart
};

/// One kind of sign per rung; told apart by shape.
enum class sign { happening, network, known_plan, replanned, done };

/// Around the place of the sign, in relative steps.
[[nodiscard]] constexpr std::string_view shape_of(sign s) {
  return s == sign::network      ? "m0-5.2l5 9h-10Z"
         : s == sign::known_plan ? "m-4.6 0a4.6 4.6 0 1 0 9.2 0a4.6 4.6 0 1 0-9.2 0Z"
         : s == sign::replanned  ? "m0-6l6 6l-6 6l-6-6Z"
         : s == sign::done       ? "m-1-6h9l-2.5 3l2.5 3h-7v6h-2Z"
                                 : "m-4.5-4h9l-4.5 8Z";
}
[[nodiscard]] constexpr color color_of(sign s) {
  return s == sign::network      ? adaptation_colors::on_time
         : s == sign::known_plan ? adaptation_colors::speed
         : s == sign::replanned  ? adaptation_colors::migrating
                                 : palette::quiet;
}

/// The chart and what its rows share.
class adaptation_canvas {
 public:
  adaptation_canvas(const adaptation_view& v, const hetplan::cluster& c, const adaptation_detail& d)
      : view(v), cluster(c), detail(d), chart(v.duration_s) {}

  const adaptation_view& view;
  const hetplan::cluster& cluster;
  adaptation_detail detail;
  time_chart chart;

  [[nodiscard]] double x(double t) const { return chart.axis().at(t); }
  [[nodiscard]] std::size_t bins() const { return static_cast<std::size_t>(chart.axis().width * detail.bins_per_pixel); }
  [[nodiscard]] value_band band() const { return {chart.axis(), bins()}; }
  void track(row_box box) {
    chart.plot.rect(chart.axis().left, box.top, chart.axis().width, box.height, palette::track.hex());
    chart.plot.raw(marks(box.top, box.top + box.height));
  }
  /// Faint lines where something happened, so that causes are found above their effects; none where they would be a carpet.
  [[nodiscard]] std::string marks(double top, double bottom) const {
    if (view.marks.empty() || view.marks.size() > 80) return {};
    std::string d;
    for (const double at : view.marks) d += "M" + fixed(x(at), 1) + " " + fixed(top, 1) + "V" + fixed(bottom, 1);
    return "<path d=\"" + d + "\" fill=\"none\" stroke=\"" + palette::activations.hex() +
           "\" stroke-opacity=\"0.6\" stroke-dasharray=\"2 3\"/>\n";
  }

  /// A box from one time to another, wide enough to be seen.
  void box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover = {}) {
    chart.plot.rect(x(from_s), b.top, std::max(1.0, x(to_s) - x(from_s)), b.height, fill, hover);
  }
  void stroke(const std::string& d, color c, double width = 2) {
    if (!d.empty()) chart.plot.path(d, "none", {}, " stroke=\"" + c.hex() + "\" stroke-width=\"" + fixed(width) + "\"");
  }
  /// What explains itself under the pointer.
  void cell(double from_s, double to_s, row_box b, std::string_view hover) {
    chart.plot.rect(x(from_s), b.top, x(to_s) - x(from_s), b.height, "transparent", hover);
  }
  void mark(sign s, double at_s, double y, std::string_view hover) {
    const std::string at = "M" + fixed(x(at_s)) + " " + fixed(y, 1);
    chart.plot.path(at + std::string(shape_of(s)), color_of(s).hex(), hover, detail.zooms ? unstretched : std::string_view());
  }
  /// A text over a time, shown when it has at least its width; those that do not fit show up when the page zooms in.
  ///
  /// @param room  pixels that it may take.
  void label(double at_s, double baseline, std::string_view text, double room, const text_style& style, std::string more = {}) {
    const double width = svg_writer::prose_width(text, style.size) + 6, left = chart.axis().left, right = left + chart.axis().width;
    if (width > room && !detail.zooms) return;
    if (width > room) more += " data-show=\"" + fixed(width / std::max(room, 0.5), 2) + "\" visibility=\"hidden\"";
    text_style middle = style;
    middle.anchor = "middle";
    const double half = std::min(width, chart.axis().width) / 2;
    chart.plot.text(std::clamp(x(at_s), left + half, right - half), baseline, text, middle, more);
  }

 private:
  static constexpr std::string_view unstretched =
      " style=\"transform:scaleX(calc(1/var(--zoom,1)));transform-box:fill-box;transform-origin:center\"";
};

/// A sign with a few words over each of some times. Where they stand too close, the words are left to the pointer.
class sign_row {
 public:
  void add(sign s, double at_s, std::string words, std::string hover) { all_.push_back({s, at_s, std::move(words), std::move(hover)}); }
  [[nodiscard]] bool empty() const { return all_.empty(); }

  /// @param y  of the signs' middle; words stand above.
  void paint(adaptation_canvas& k, double y) {
    std::stable_sort(all_.begin(), all_.end(), [](const item& a, const item& b) { return a.at_s < b.at_s; });
    if (all_.size() > k.detail.signs) thin(k);
    const auto width = [&](std::size_t i) { return i < all_.size() ? svg_writer::prose_width(all_[i].words, 9.5) + 6 : 0; };
    const double left = k.chart.axis().left, right = left + k.chart.axis().width;
    double free_from = left;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const double here = k.x(all_[i].at_s), before = i > 0 ? k.x(all_[i - 1].at_s) : left - 100;
      const double next = i + 1 < all_.size() ? k.x(all_[i + 1].at_s) : right + 100;
      // Words stand centred, at the edges of the chart beside that, and never above another sign.
      const double begin = std::clamp(here - width(i) / 2, left, std::max(left, right - width(i)));
      if (!all_[i].words.empty() && begin >= std::max(free_from, before + 5) && begin + width(i) <= next - 5) {
        k.label(all_[i].at_s, y - 8, all_[i].words, width(i), {.size = 9.5});
        free_from = begin + width(i);
      } else if (k.detail.zooms && !all_[i].words.empty()) {
        // Later, when both neighbours leave room for the widest of the three.
        const double widest = std::max({width(i), i > 0 ? width(i - 1) : 0, width(i + 1)});
        k.label(all_[i].at_s, y - 8, all_[i].words, width(i) * std::min(here - before, next - here) / widest, {.size = 9.5});
      }
      k.mark(all_[i].what, all_[i].at_s, y, all_[i].hover);
    }
  }

 private:
  struct item {
    sign what;
    double at_s;
    std::string words, hover;
  };
  /// One sign for those within a few pixels: the last kind among them, which is the strongest.
  void thin(const adaptation_canvas& k) {
    std::vector<item> few;
    std::size_t together = 1;
    const double apart = std::max(9.0, k.chart.axis().width / static_cast<double>(k.detail.signs));
    for (item& i : all_) {
      if (!few.empty() && k.x(i.at_s) - k.x(few.back().at_s) < apart) {
        ++together;
        few.back().what = std::max(few.back().what, i.what);
        few.back().words.clear();
        few.back().hover = std::to_string(together) + " from " + clock_text(few.back().at_s) + " on; the last:\n" + i.hover;
        continue;
      }
      together = 1;
      few.push_back(std::move(i));
    }
    all_ = std::move(few);
  }

  std::vector<item> all_;
};

/// Spans that explain themselves: each level if they are few, else equal parts with the least and the most.
template <class Text>
void explain_levels(adaptation_canvas& k, const std::vector<level>& levels, row_box box, Text&& text) {
  const auto tell = [&](double from, double to, double least, double most) {
    const std::string when = clock_text(from) + " to " + clock_text(to);
    k.cell(from, to, box, text(least) + (most > least ? " to " + text(most) : "") + "\n" + when);
  };
  if (levels.size() <= k.detail.cells) {
    for (const level& l : levels) tell(l.from_s, l.to_s, l.value, l.value);
    return;
  }
  const auto n = static_cast<double>(k.detail.cells);
  std::size_t i = 0;
  for (std::size_t part = 0; part < k.detail.cells; ++part) {
    const double from = k.view.duration_s * static_cast<double>(part) / n, to = k.view.duration_s * static_cast<double>(part + 1) / n;
    while (i + 1 < levels.size() && levels[i].to_s <= from) ++i;
    double least = levels[i].value, most = least;
    for (std::size_t j = i; j < levels.size() && levels[j].from_s < to; ++j) {
      least = std::min(least, levels[j].value);
      most = std::max(most, levels[j].value);
    }
    tell(from, to, least, most);
  }
}

/// A capacity or a speed over time: a filled curve, hatched where it is 0 or its device away.
template <class Text>
void paint_changing(adaptation_canvas& k, const changing& c, color fill, std::string_view zero, row_box box, Text&& text) {
  double full = c.nominal, sum = 0, none = 0, away = 0;
  value_band band = k.band();
  const time_axis& axis = k.chart.axis();
  for (const level& l : c.levels) {
    full = std::max(full, l.value);
    sum += l.value * (l.to_s - l.from_s);
    none += l.value == 0 ? l.to_s - l.from_s : 0;
    band.add(l.from_s, l.to_s, l.value);
  }
  k.track(box);
  const std::string pale = mix(fill, palette::paper, 0.75).hex();
  if (c.levels.size() > many) {
    k.chart.plot.path(band.area(box, full), pale);
    k.chart.plot.path(band.range(box, full), mix(fill, palette::paper, 0.5).hex());
    k.stroke(step_line(band.means([](std::size_t) { return true; }), axis, box, full), fill);
  } else {
    k.chart.plot.path(step_area(c.levels, axis, box, full), pale);
    k.stroke(step_line(c.levels, axis, box, full), fill);
  }
  const auto hatch = [&](const level& l, std::string_view pattern, std::string_view words) {
    k.box(l.from_s, l.to_s, box, pattern);
    const std::string halo = " stroke=\"" + palette::track.hex() + "\" stroke-width=\"5\" stroke-linejoin=\"round\" paint-order=\"stroke\"";
    k.label((l.from_s + l.to_s) / 2, box.top + box.height / 2 + 3.5, words, k.x(l.to_s) - k.x(l.from_s), {.size = 10.5}, halo);
  };
  std::size_t hatched = 0;
  for (const level& l : c.levels) {
    if (l.value == 0 && ++hatched <= 200) hatch(l, "url(#hetplan-outage)", zero);
  }
  explain_levels(k, c.levels, box, text);
  for (const level& l : c.away) {
    away += l.to_s - l.from_s;
    if (++hatched <= 400) hatch(l, "url(#hetplan-away)", "away");
  }
  k.chart.level(text(full), box.top + 8);
  k.chart.level("0", box.top + box.height);
  const double middle = box.top + box.height / 2;
  if (full > c.nominal) {
    const double y = box.level(c.nominal / full);
    k.chart.plot.line(k.chart.axis().left, y, k.chart.axis().left + k.chart.axis().width, y, palette::activations, 1,
                      " stroke-dasharray=\"4 3\"");
  }
  k.chart.number("mean " + text(sum / k.view.duration_s), middle - 2);
  if (away > 0) {
    k.chart.number("away " + clock_text(away), middle + 11, palette::quiet);
  } else if (none > 0) {
    k.chart.number(std::string(zero) + " " + clock_text(none), middle + 11, palette::alarm);
  } else {
    k.chart.number("nominal " + text(c.nominal), middle + 11, palette::quiet);
  }
}

}  // namespace hetplan::io::detail
