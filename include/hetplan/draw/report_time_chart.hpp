// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A chart over time in the report: what zooms stands apart from what does not, and all charts zoom together.

#include <string>
#include <string_view>
#include <vector>

#include <hetplan/draw/gantt_scale.hpp>
#include <hetplan/draw/ticks.hpp>

namespace hetplan::draw::detail {

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

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_time_chart.ipp>
#endif
