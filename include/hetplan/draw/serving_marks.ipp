// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_marks.hpp>

#include <algorithm>
#include <string_view>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/signs.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE double paint_marks(time_chart& chart, const serving_view& view, double top) {
  if (view.marks.empty()) return top;
  constexpr double lane_height = 20, size = 10.5, gap = 10;
  constexpr std::size_t most_lanes = 5;
  constexpr std::string_view em_space = "\xE2\x80\x83";  // stays as wide as it is when the chart is stretched
  std::vector<double> free_from;                         // by lane
  double crowded_until = 0;                              // among signs without words one stands for those within a pixel
  const double right = chart.axis().left + chart.axis().width;
  for (const auto& m : view.marks) {
    const double x = chart.axis().at(m.from_s), end = std::max(x + 8, chart.axis().at(m.to_s));
    const double words = svg_writer::prose_width(m.words, size) + 2 * size;
    const bool on_left = x + words > right;
    const double from = on_left ? x - words : x - 6, to = on_left ? end : std::max(end, x + words);
    auto lane = static_cast<std::size_t>(std::ranges::find_if(free_from, [&](double f) { return f <= from; }) - free_from.begin());
    const bool fits = lane < most_lanes;  // else it stands below the others
    if (fits && lane == free_from.size()) free_from.push_back(0);
    if (!fits && x < crowded_until) continue;
    if (fits) free_from[lane] = to + gap;
    else crowded_until = x + 1, lane = most_lanes;
    const double y = top + 8 + lane_height * static_cast<double>(lane);
    std::string hover = m.words + "\nat " + clock_text(m.from_s);
    if (m.to_s > m.from_s) hover += ", until " + clock_text(m.to_s);
    chart.plot.open_group(m.is_fault ? " class=\"mark fault\"" : " class=\"mark change\"");
    if (m.to_s > m.from_s) chart.plot.rect(x, y + 7, end - x, 2.5, "currentColor", hover);
    chart.plot.path("M" + fixed(x) + " " + fixed(y, 1) + std::string(shape_of(m.is_fault ? sign::event : sign::replanned)), "currentColor",
                    hover, unstretched);
    if (fits) {
      const std::string text = on_left ? m.words + std::string(em_space) : std::string(em_space) + m.words;
      chart.plot.text(x, y + 3.5, text, {.size = size, .anchor = on_left ? "end" : "start"},
                      on_left ? " style=\"transform-origin:100% 50%\"" : " style=\"transform-origin:0 50%\"");
    }
    chart.plot.close_group();
  }
  const double height = lane_height * static_cast<double>(free_from.size() + (crowded_until > 0 ? 1 : 0));
  const bool both = view.history.changes > 0 && std::ranges::any_of(view.marks, &serving_mark::is_fault);
  chart.name(both ? "Events" : view.marks.front().is_fault ? "Faults" : "Changes", {}, top, std::min(height, lane_height));
  return top + height + 8;
}

HETPLAN_INLINE std::string mark_lines(const time_chart& chart, const serving_view& view, double top, double bottom) {
  constexpr std::size_t most = 60;
  if (view.marks.size() > most) return {};
  std::string text;
  for (const bool faults : {false, true}) {
    std::string d;
    for (const auto& m : view.marks) {
      if (m.is_fault == faults) d += "M" + fixed(chart.axis().at(m.from_s), 1) + " " + fixed(top, 1) + "V" + fixed(bottom, 1);
    }
    if (!d.empty())
      text += "<path class=\"mark " + std::string(faults ? "fault" : "change") + "\" d=\"" + d +
              "\" fill=\"none\" stroke=\"currentColor\" stroke-dasharray=\"3 3\" pointer-events=\"none\"/>\n";
  }
  return text;
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
