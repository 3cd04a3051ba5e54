// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Round numbers along an axis, and the axis of a chart over time: in seconds and their parts, or as on a clock.

#include <string>
#include <vector>

#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

/// A step of 1, 2 or 5 times a power of ten, so that at most `most` fit into a span.
[[nodiscard]] double round_step(double span, double most);

/// The smallest step between round times that gives at most so many of them: as on a clock from a minute on.
[[nodiscard]] double clock_step(double span_s, double most);

/// "0", "30 s", "1 min 30 s", "1 h", "12 h 20 min": a round time in full.
[[nodiscard]] std::string clock_label(double s);

/// A round time and what stands below it.
struct tick {
  double at_s = 0;
  std::string label;
};

/// In the unit that fits the whole axis: "20 ms".
[[nodiscard]] std::vector<tick> second_ticks(const time_axis& axis);

/// In hours, minutes and seconds.
[[nodiscard]] std::vector<tick> clock_ticks(const time_axis& axis);

/// A line through all rows at each time, and its label below them.
void paint_ticks(svg_writer& out, const time_axis& axis, const std::vector<tick>& ticks, double top, double bottom);

/// Ticks as the script of a page finds them, and the line that they stand on.
void paint_time_axis(svg_writer& out, const time_axis& axis, const std::vector<tick>& ticks, double top, double bottom);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/ticks.ipp>
#endif
