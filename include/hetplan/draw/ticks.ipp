// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/ticks.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace hetplan::draw::detail {

HETPLAN_INLINE double round_step(double span, double most) {
  if (!(span > 0) || !std::isfinite(span)) return 1;
  const double rough = span / most, power = std::pow(10.0, std::floor(std::log10(rough)));
  return power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
}

struct unit_of_time {
  double seconds;
  const char* name;
};
/// The largest that fits into a span.
[[nodiscard]] HETPLAN_INLINE unit_of_time unit_within(double span_s) {
  return span_s >= 1      ? unit_of_time{1, "s"}
         : span_s >= 1e-3 ? unit_of_time{1e-3, "ms"}
         : span_s >= 1e-6 ? unit_of_time{1e-6, "µs"}
                          : unit_of_time{1e-9, "ns"};
}
[[nodiscard]] HETPLAN_INLINE double at_least_two(double most) { return std::max(2.0, std::floor(most)); }

HETPLAN_INLINE double clock_step(double span_s, double most) {
  constexpr std::array<double, 15> steps{15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800};
  if (span_s < 120) {
    const unit_of_time unit = unit_within(span_s);
    return round_step(span_s / unit.seconds, at_least_two(most)) * unit.seconds;
  }
  std::size_t i = 0;
  while (i + 1 < steps.size() && span_s / steps[i] > most) ++i;
  double step = steps[i];
  while (span_s / step > most) step *= 2;
  return step;
}

HETPLAN_INLINE std::string clock_label(double s) {
  if (s > 0 && s < 1) return engineering(s, "s");
  const double hours = std::floor(s / 3600), minutes = std::floor((s - 3600 * hours) / 60), rest = s - 3600 * hours - 60 * minutes;
  std::string text;
  const auto add = [&](double n, const char* unit) {
    if (n > 0) text += (text.empty() ? "" : " ") + fixed(n, 3) + " " + unit;
  };
  add(hours, "h");
  add(minutes, "min");
  add(rest, "s");
  return text.empty() ? "0" : text;
}

/// Every round time of an axis: time_of(i) for i = 0, 1, ...
template <class Time, class Label>
[[nodiscard]] std::vector<tick> ticks_until(double end_s, Time&& time_of, Label&& label_of) {
  std::vector<tick> all;
  for (int i = 0; time_of(i) <= end_s * (1 + 1e-9) && i < 1000; ++i) all.push_back({time_of(i), label_of(i)});
  return all;
}

HETPLAN_INLINE std::vector<tick> second_ticks(const time_axis& axis) {
  const unit_of_time unit = unit_within(axis.latency_s);
  const double step = round_step(axis.latency_s / unit.seconds, at_least_two(axis.width / 90));
  return ticks_until(
      axis.latency_s, [&](int i) { return i * step * unit.seconds; }, [&](int i) { return fixed(i * step, 6) + " " + unit.name; });
}

HETPLAN_INLINE std::vector<tick> clock_ticks(const time_axis& axis) {
  const double step = clock_step(axis.latency_s, axis.width / 80);
  return ticks_until(
      axis.latency_s, [&](int i) { return i * step; }, [&](int i) { return clock_label(i * step); });
}

HETPLAN_INLINE void paint_ticks(svg_writer& out, const time_axis& axis, const std::vector<tick>& ticks, double top, double bottom) {
  for (const tick& t : ticks) {
    const double x = axis.at(t.at_s);
    out.line(x, top, x, bottom + 4, palette::grid);
    out.text(x, bottom + 20, t.label, {.fill = palette::quiet, .anchor = "middle"});
  }
}

HETPLAN_INLINE void paint_time_axis(svg_writer& out, const time_axis& axis, const std::vector<tick>& ticks, double top, double bottom) {
  out.open_group(" class=\"ticks\"" + svg_writer::attribute("data-top", top) + svg_writer::attribute("data-bottom", bottom));
  paint_ticks(out, axis, ticks, top, bottom);
  out.close_group();
  out.line(axis.left, bottom + 4, axis.left + axis.width, bottom + 4, palette::frame);
}

}  // namespace hetplan::draw::detail
