// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The rows of an adaptation's chart: what changed, and below it what each policy made of it.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/adaptation_view.hpp>
#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

// What the rows of an adaptation's chart are drawn on: colours, signs, and rows for what changed around the policies.

/// Colours of the chart. What is hatched has paper-coloured stripes over its colour.
struct adaptation_colors {
  static constexpr color capacity{31, 95, 168}, speed{26, 138, 107}, away{134, 146, 160};
  static constexpr color on_time{31, 95, 168}, late = palette::alarm;
  static constexpr color migrating{214, 106, 18}, stalled = palette::alarm, idle{196, 203, 212}, cut_off = palette::ink;
  [[nodiscard]] static color layout(std::size_t i) { return palette::category_color(i); }
};

/// Patterns that the rows use, once per page.
[[nodiscard]] std::string hatch_patterns();

/// More levels or stretches than this are drawn as a band from least to most with the mean in it.
inline constexpr std::size_t many = 400;

/// How fine the chart is drawn.
struct adaptation_detail {
  double bins_per_pixel = 1;
  std::size_t cells = 60;  ///< spans of a row that explain themselves under the pointer
  std::size_t signs = 60;  ///< of a row; where there are more, one stands for several
  bool zooms = false;      ///< signs keep their shape when the page's script stretches the chart
};

[[nodiscard]] constexpr color color_of(sign s) {
  return s == sign::network      ? adaptation_colors::on_time
         : s == sign::known_plan ? adaptation_colors::speed
         : s == sign::replanned  ? adaptation_colors::migrating
                                 : palette::quiet;
}

/// The chart and what its rows share.
class adaptation_canvas {
 public:
  adaptation_canvas(const adaptation_view& v, const hetplan::cluster& c, const adaptation_detail& d);

  const adaptation_view& view;
  const hetplan::cluster& cluster;
  adaptation_detail detail;
  time_chart chart;

  [[nodiscard]] double x(double t) const { return chart.axis().at(t); }
  [[nodiscard]] std::size_t bins() const { return static_cast<std::size_t>(chart.axis().width * detail.bins_per_pixel); }
  [[nodiscard]] value_band band() const { return {chart.axis(), bins()}; }
  void track(row_box box);
  /// Faint lines where something happened, so that causes are found above their effects; none where they would be a carpet.
  [[nodiscard]] std::string marks(double top, double bottom) const;

  /// A box from one time to another, wide enough to be seen.
  void box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover = {});
  void stroke(const std::string& d, color c, double width = 2);
  /// What explains itself under the pointer.
  void cell(double from_s, double to_s, row_box b, std::string_view hover);
  void mark(sign s, double at_s, double y, std::string_view hover);
  /// A text over a time, shown when it has at least its width; those that do not fit show up when the page zooms in.
  ///
  /// @param room  pixels that it may take.
  void label(double at_s, double baseline, std::string_view text, double room, const text_style& style, std::string more = {});
};

/// A sign with a few words over each of some times. Where they stand too close, the words are left to the pointer.
class sign_row {
 public:
  void add(sign s, double at_s, std::string words, std::string hover) { all_.push_back({s, at_s, std::move(words), std::move(hover)}); }
  [[nodiscard]] bool empty() const { return all_.empty(); }

  /// @param y  of the signs' middle; words stand above.
  void paint(adaptation_canvas& k, double y);

 private:
  struct item {
    sign what;
    double at_s;
    std::string words, hover;
  };
  /// One sign for those within a few pixels: the last kind among them, which is the strongest.
  void thin(const adaptation_canvas& k);

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

/// Paints the whole chart from the top down.
class adaptation_rows {
 public:
  explicit adaptation_rows(adaptation_canvas& k) : k_(k), view_(k.view), full_s_(response_scale()) {}

  /// @return  the lower edge of the last row
  double paint();

 private:
  [[nodiscard]] double paint_conditions(double y);
  [[nodiscard]] double paint_signs(sign_row& row, std::string_view name, double y);

  [[nodiscard]] double paint_policy(std::size_t p, double y);

  // --- how fast ---

  /// One scale for all policies: what was wanted, and 98 % of the time that something ran, fit in.
  [[nodiscard]] double response_scale() const;

  void paint_response(const adapt::history& h, row_box box);

  [[nodiscard]] static sign sign_of(adapt::rung r);

  adaptation_canvas& k_;
  const adaptation_view& view_;
  double full_s_;
  double deadline_top_ = 6;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/adaptation_rows.ipp>
#endif
