// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Chart of an adaptation over time: changes of the conditions above, the response of each policy below.

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

/// Capacity [B/s] of a resource or speed [factor] of a device over time, and the device's absences.
struct changing {
  std::size_t index = 0;  ///< of the resource or device
  double nominal = 1;
  std::vector<level> levels = {};
  std::vector<level> away = {};

  /// Returns the deviation from the nominal value, integrated over time. Rows with the largest deviations are shown.
  [[nodiscard]] double deviation() const;
};

/// Short name of a plan among those of all policies: a letter for the layout (which device computes what), a number for the variant
/// (microbatches, shares, the schedule of the network).
struct plan_name {
  std::size_t layout = 0;   ///< 0: A
  std::size_t variant = 0;  ///< 0: the first plan with this layout
  [[nodiscard]] std::string text() const;
};

/// A plan of a history, and what is predicted of it; null: unknown.
struct shown_plan {
  const hetplan::plan* plan;
  const evaluation* predicted;
};

/// Data of the chart, from a timeline and its histories.
class adaptation_view {
 public:
  static constexpr std::size_t most_resources = 6, most_devices = 8;

  adaptation_view(std::span<const io::policy_history> rows, const adapt::timeline& t, const cluster& c, const qoe_target& first_target);

  std::span<const io::policy_history> policies;
  double duration_s;
  std::vector<changing> resources = {}, devices = {};  ///< with the largest changes, by index
  std::size_t hidden = 0;                              ///< number of others that change
  std::vector<adapt::event> transfers = {};
  std::vector<level> wanted = {};                     ///< response targets; infinite while there is none
  std::vector<double> deadlines = {};                 ///< deadlines in force when they expired, or at the end
  std::vector<double> marks = {};                     ///< ascending times of events, without the steps of traces
  std::vector<std::vector<plan_name>> names = {};     ///< by policy and index into history::plans
  std::vector<std::vector<shown_plan>> layouts = {};  ///< plans of each layout, by variant

  [[nodiscard]] std::string name(std::size_t policy, std::size_t index) const;
  [[nodiscard]] std::size_t layout(std::size_t policy, std::size_t index) const;
  [[nodiscard]] double wanted_at(double t) const;

 private:
  void read_conditions(const adapt::timeline& t, const cluster& c);

  void keep_most(std::vector<changing>& all, std::size_t most);

  void read_targets(const adapt::timeline& t, const qoe_target& first);

  [[nodiscard]] plan_name name_of(const shown_plan& p);
};

/// Colours of the chart. Hatches are paper-coloured stripes over a colour.
struct adaptation_colors {
  static constexpr color capacity{31, 95, 168}, speed{26, 138, 107}, away{134, 146, 160};
  static constexpr color on_time{31, 95, 168}, late = palette::alarm;
  static constexpr color migrating{214, 106, 18}, stalled = palette::alarm, idle{196, 203, 212}, cut_off = palette::ink;
  [[nodiscard]] static color layout(std::size_t i) { return palette::category_color(i); }
};

/// Returns the definitions of the hatches, once per page.
[[nodiscard]] std::string hatch_patterns();

/// Resolution of the chart.
struct adaptation_detail {
  double bins_per_pixel = 1;
  std::size_t cells = 60;  ///< parts of a row with their own hover text
  std::size_t signs = 60;  ///< most signs of a row; beyond, nearby signs are merged
  bool zooms = false;      ///< true if signs keep their shape when the page's script stretches the chart
};

[[nodiscard]] constexpr color color_of(sign s) {
  return s == sign::network      ? adaptation_colors::on_time
         : s == sign::known_plan ? adaptation_colors::speed
         : s == sign::replanned  ? adaptation_colors::migrating
                                 : palette::quiet;
}

/// Drawing area shared by the rows of the chart.
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
  /// Returns faint lines at events, which connect causes to effects; none if there are too many.
  [[nodiscard]] std::string marks(double top, double bottom) const;

  /// Draws a box between two times, at least of visible width.
  void box(double from_s, double to_s, row_box b, std::string_view fill, std::string_view hover = {});
  void stroke(const std::string& d, color c, double width = 2);
  /// Adds an invisible box with a hover text.
  void cell(double from_s, double to_s, row_box b, std::string_view hover);
  void mark(sign s, double at_s, double y, std::string_view hover);
  /// Writes a text of at most `room` pixels at a time. A text without room appears when the page zooms in.
  void label(double at_s, double baseline, std::string_view text, double room, const text_style& style, std::string more = {});
};

/// Paints the conditions, then a row for each policy. Returns the lower edge of the last row.
double paint_rows(adaptation_canvas& k);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/adaptation_chart.ipp>
#endif
