// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_time_chart.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE time_chart::time_chart(double latency_s) {
  axis_.left = left;
  axis_.width = width - left - numbers;
  axis_.latency_s = latency_s > 0 ? latency_s : 1;
}

HETPLAN_INLINE void time_chart::name(std::string_view name, std::string_view below, double top, double height) {
  const bool two_lines = height >= 24 && !below.empty();
  const double size = std::min(12.5, height * 0.75), middle = top + height / 2;
  const auto room = [](double at, double per_character) { return static_cast<std::size_t>((left - 12) / (per_character * at)); };
  still.text(0, two_lines ? middle - 2 : middle + 0.36 * size, fitted(name, room(size, 0.66)), {.size = size, .weight = 600});
  if (two_lines) still.text(0, middle + 12, fitted(below, room(10.5, 0.57)), {.size = 10.5, .fill = palette::quiet});
}

HETPLAN_INLINE void time_chart::number(std::string_view text, double baseline, color fill) {
  still.text(width, baseline, text, {.size = 11, .fill = fill, .anchor = "end"});
}

HETPLAN_INLINE std::string time_chart::finish(std::string_view id, std::string_view label, double top, double bottom) && {
  return std::move(*this).finish(id, label, top, bottom, second_ticks(axis_), {});
}

HETPLAN_INLINE std::string time_chart::finish(std::string_view id, std::string_view label, double top, double bottom,
                                              const std::vector<tick>& ticks, std::string_view definitions) && {
  svg_writer all;
  all.raw(definitions);
  const std::string clip = "clip-" + std::string(id);
  const double height = bottom + 30;
  all.raw("<defs><clipPath id=\"" + clip + "\"><rect" + svg_writer::attribute("x", left - 0.5) + " y=\"0\"" +
          svg_writer::attribute("width", axis_.width + 1) + svg_writer::attribute("height", bottom + 4) + "/></clipPath></defs>\n");
  all.raw("<rect class=\"catch\" fill=\"transparent\"" + svg_writer::attribute("x", left) + svg_writer::attribute("y", 0) +
          svg_writer::attribute("width", axis_.width) + svg_writer::attribute("height", height) + "/>\n");
  paint_time_axis(all, axis_, ticks, top, bottom);
  all.raw("<g clip-path=\"url(#" + clip + ")\"><g class=\"plot\">\n");
  all.append(std::move(plot));
  all.raw("</g></g>\n");
  all.append(std::move(still));
  all.raw("<rect class=\"span\"" + svg_writer::attribute("y", top) + svg_writer::attribute("height", bottom - top + 4) +
          " width=\"0\" x=\"0\" visibility=\"hidden\"/>\n");
  return std::move(all).embedded(width, height, label,
                                 " id=\"" + std::string(id) + "\" class=\"over-time\" tabindex=\"0\"" +
                                     svg_writer::attribute("data-left", left) + svg_writer::attribute("data-width", axis_.width) +
                                     " data-seconds=\"" + to_text(axis_.latency_s) + "\"");
}

}  // namespace hetplan::draw::detail
