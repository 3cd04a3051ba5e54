// SPDX-License-Identifier: BSL-1.0
#pragma once
/// An adaptation over time as a chart: what changed, and below it what each policy made of it.

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/time_axis.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::draw::detail {

/// A resource's capacity [B/s] or a device's speed [factor] over time, and when the device was away.
struct changing {
  std::size_t index = 0;  ///< of the resource or device
  double nominal = 1;
  std::vector<level> levels = {};
  std::vector<level> away = {};

  /// Its mean distance from the nominal value times how long: the rows with the most are shown.
  [[nodiscard]] double deviation() const;
};

/// A plan's name among all that ran under any policy: a letter for who computes what, a number for how: microbatches,
/// shares, the schedule of the network.
struct plan_name {
  std::size_t layout = 0;   ///< 0: A
  std::size_t variant = 0;  ///< 0: the first with this layout
  [[nodiscard]] std::string text() const;
};

/// What the pictures read out of a timeline and its histories.
class adaptation_view {
 public:
  static constexpr std::size_t most_resources = 6, most_devices = 8;

  adaptation_view(std::span<const io::policy_history> rows, const adapt::timeline& t, const cluster& c, const qoe_target& first_target);

  std::span<const io::policy_history> policies;
  double duration_s;
  std::vector<changing> resources = {}, devices = {};  ///< resources and devices that change, the most changing ones, by index
  std::size_t hidden = 0;                              ///< how many more change
  std::vector<adapt::event> transfers = {};
  std::vector<level> wanted = {};                      ///< responses; infinite while none is wanted
  std::vector<double> deadlines = {};                  ///< deadlines that were in force when their time came, or at the end
  std::vector<double> marks = {};                      ///< times of events other than steps of a trace; ascending
  std::vector<std::vector<plan_name>> names = {};      ///< by policy and index into history::plans
  std::vector<std::vector<const plan*>> layouts = {};  ///< the plans of each letter, by variant

  [[nodiscard]] std::string name(std::size_t policy, std::size_t index) const;
  [[nodiscard]] std::size_t layout(std::size_t policy, std::size_t index) const;
  /// The response that was wanted at a time.
  [[nodiscard]] double wanted_at(double t) const;

 private:
  void read_conditions(const adapt::timeline& t, const cluster& c);

  void keep_most(std::vector<changing>& all, std::size_t most);

  void read_targets(const adapt::timeline& t, const qoe_target& first);

  [[nodiscard]] plan_name name_of(const plan& p);
};

/// Colours of the chart. A hatch is paper-coloured stripes over its colour.
struct adaptation_colors {
  static constexpr color capacity{31, 95, 168}, speed{26, 138, 107}, away{134, 146, 160};
  static constexpr color on_time{31, 95, 168}, late = palette::alarm;
  static constexpr color migrating{214, 106, 18}, stalled = palette::alarm, idle{196, 203, 212}, cut_off = palette::ink;
  [[nodiscard]] static color layout(std::size_t i) { return palette::category_color(i); }
};

/// Patterns that the rows use, once per page.
[[nodiscard]] std::string hatch_patterns();

/// How fine the chart is drawn.
struct adaptation_detail {
  double bins_per_pixel = 1;
  std::size_t cells = 60;  ///< parts of a row with a text of their own under the pointer
  std::size_t signs = 60;  ///< signs of a row; of more, one stands for several
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
  /// Faint lines at events, so that causes are found above their effects; none where there are too many.
  [[nodiscard]] std::string marks(double top, double bottom) const;

  /// A box from one time to another, wide enough to be seen.
  void box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover = {});
  void stroke(const std::string& d, color c, double width = 2);
  /// An invisible box with a text under the pointer.
  void cell(double from_s, double to_s, row_box b, std::string_view hover);
  void mark(sign s, double at_s, double y, std::string_view hover);
  /// A text over a time. Without room for it, it shows up when the page zooms in.
  ///
  /// @param room  pixels that the text may take.
  void label(double at_s, double baseline, std::string_view text, double room, const text_style& style, std::string more = {});
};

/// Paints the chart from the top down: what changed, and below it a row for each policy.
/// @return  the lower edge of the last row.
double paint_rows(adaptation_canvas& k);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/adaptation_chart.ipp>
#endif
