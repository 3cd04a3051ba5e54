// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's Gantt chart: the critical path, a row per device with what it sends, a row per network resource.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/ticks.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/simulate/waits.hpp>

namespace hetplan::draw::detail {

// A chart over time in the report: what zooms stands apart from what does not, and all charts zoom together.

/// Names on the left, numbers on the right, time between them. `plot` is stretched by the page's script, `still` is not.
class time_chart {
 public:
  static constexpr double width = 1180, left = 172, numbers = 132;

  explicit time_chart(double latency_s);

  svg_writer plot, still;

  [[nodiscard]] const time_axis& axis() const { return axis_; }

  void name(std::string_view name, std::string_view below, double top, double height);
  /// In the column of names, at its right edge: where a level of the axis is.
  void level(std::string_view text, double y) { still.text(left - 6, y, text, {.size = 9.5, .fill = palette::quiet, .anchor = "end"}); }
  void number(std::string_view text, double baseline, color fill = palette::ink);

  /// @param top, bottom  of the rows; the axis stands below them.
  [[nodiscard]] std::string finish(std::string_view id, std::string_view label, double top, double bottom) &&;
  /// The same with other ticks than seconds, and with definitions that the rows use.
  [[nodiscard]] std::string finish(std::string_view id, std::string_view label, double top, double bottom, const std::vector<tick>& ticks,
                                   std::string_view definitions) &&;

 private:
  time_axis axis_;
};

// What the report knows about a run beyond its picture: the critical chain, and what sharing cost each transfer.

/// A judged plan, read once for all parts of the page. Refers to its arguments, which must outlive it.
///
/// Complexity  that of the critical chain and of trace_view::resources.
class report_run {
 public:
  const hetplan::plan& plan;
  const hetplan::cluster& cluster;
  const hetplan::judgement& judgement;
  trace_view view;
  std::vector<resource_view> resources;
  std::vector<critical_link> chain;
  bool merged = false;  ///< too much happened for a bar per task

  report_run(const hetplan::plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars);

  [[nodiscard]] double latency_s() const { return judgement.trace.latency.value(); }
  [[nodiscard]] bool critical(tasks::node_id n) const { return critical_[n] != 0; }
  [[nodiscard]] bool used(device_id d) const { return judgement.graph.used[d.index()] != 0; }

  /// Seconds that a transfer took because it shared its route.
  [[nodiscard]] double lost_s(std::size_t t) const;

  /// With how many others at a time a transfer shared a resource of its route, at most; and which resource.
  [[nodiscard]] std::pair<std::uint32_t, std::string> most_others(std::size_t t) const;

  /// Why it did not start earlier, as a sentence; "" where nothing kept it.
  [[nodiscard]] std::string why(tasks::node_id n) const;

  /// What a bar says on hover beside its name, times and bytes: each line begins with a line break.
  [[nodiscard]] std::string hover_lines(tasks::node_id n) const;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  waits waits_;
  std::vector<char> critical_;            ///< by node
  std::vector<std::size_t> of_resource_;  ///< index into `resources`
  bool prioritised_ = false;
};

/// Where the seconds of the critical path go.
enum class critical_part { computing, transfer, latency, lost, held };
inline constexpr std::size_t critical_part_count = static_cast<std::size_t>(critical_part::held) + 1;

struct critical_part_style {
  std::string_view name, about;
  color fill;
};
[[nodiscard]] critical_part_style style_of(critical_part p);
[[nodiscard]] std::array<double, critical_part_count> parts_of(const critical_link& l, bool compute);

class report_timeline {
 public:
  explicit report_timeline(const report_run& run);

  [[nodiscard]] std::string paint() &&;

 private:
  /// Every moment is somebody's: a task, or a transfer with its latency and what it lost to others.
  void critical_path(row_box box);

  void link(const critical_link& l, row_box box);

  /// The transfers that leave a device, from their start (latency included) to their end, in lanes; returns the height.
  double sends(device_id d, double top);

  void resource_row(row_painter& rows, const resource_view& r, row_box box);

  [[nodiscard]] std::string legend() const;
  [[nodiscard]] static std::string swatch(const std::string& fill, std::string_view more = "");

  [[nodiscard]] std::string notes() const;

  const report_run& run_;
  time_chart chart_;
  std::vector<resource_view> resources_;
  zooming_bars bars_;
  std::size_t devices_ = 0, hidden_ = 0, merged_ = 0;
  bool contended_ = false;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_timeline.ipp>
#endif
