// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_queues.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/heat_grid.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_time_chart.hpp>
#include <hetplan/draw/serving_marks.hpp>
#include <hetplan/draw/ticks.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Some bins of the history together, the fullest counts.
[[nodiscard]] HETPLAN_INLINE heat_grid queue_grid(const serving_view& view, const server_slots& slots, const time_axis& axis) {
  constexpr std::size_t most_columns = 400;
  const auto& waiting = view.history.waiting;
  const double bin_s = view.history.bin.value();
  // Not finer than servers publish: without a publication a bin says nothing.
  const auto period =
      static_cast<std::size_t>(std::ceil(std::min(view.cloud.ring.period.value() / bin_s, static_cast<double>(waiting.size()))));
  const std::size_t each = std::max((waiting.size() + most_columns - 1) / most_columns, period);
  heat_grid grid{.left = axis.left, .most = {0}, .units = {"requests waiting"}, .kind = "queue", .id = "queue-grid"};
  std::size_t columns = 0;
  for (std::size_t b = 0; b < waiting.size(); b += each, ++columns) {
    const double from_s = static_cast<double>(b) * bin_s, to_s = static_cast<double>(b + each) * bin_s;
    grid.columns.push_back(clock_text(from_s) + " to " + clock_text(std::min(to_s, view.duration_s)));
  }
  // Beyond the end of the axis it is clipped.
  grid.width = axis.width * static_cast<double>(columns * each) * bin_s / axis.latency_s;
  for (const auto& s : slots) {
    std::vector<double> row(columns);
    for (std::size_t b = 0; b < waiting.size(); ++b) {
      for (std::size_t k = s.first; k < s.first + s.count; ++k) row[b / each] = std::max(row[b / each], static_cast<double>(waiting[b][k]));
    }
    grid.most.front() = std::max(grid.most.front(), *std::ranges::max_element(row));
    grid.rows.push_back(slots.name(s) + (s.count > 1 ? ", the fullest" : ""));
    grid.values.push_back(std::move(row));
  }
  return grid;
}

HETPLAN_INLINE std::string queue_map(const serving_view& view) {
  if (view.history.waiting.empty()) return {};
  const server_slots slots(view.cloud, 250);
  time_chart chart(view.duration_s);
  const double top = paint_marks(chart, view, 4);
  heat_grid grid = queue_grid(view, slots, chart.axis());
  if (grid.most.front() == 0) return {};
  const auto n = static_cast<double>(slots.size());
  const double high = slots.size() <= 12 ? 22 : slots.size() <= 40 ? 13 : std::max(2.0, 520 / n);
  grid.top = top + 4;
  grid.height = high * n;
  paint(chart.plot, grid);
  for (const std::size_t i : slots.ring_edges()) {
    const double y = grid.top + static_cast<double>(i) * high;
    chart.plot.line(chart.axis().left, y, chart.axis().left + chart.axis().width, y, palette::paper, high > 4 ? 3 : 1.5);
  }
  for (const auto& t : slots.labels(high >= 12 ? 1 : 13 / high)) {
    const double y = grid.top + (static_cast<double>(t.slot) + 0.5) * high;
    chart.still.text(time_chart::left - 8, y + 3.5, fitted(t.text, 24), {.size = 10.5, .fill = palette::quiet, .anchor = "end"});
  }
  if (slots.ring_edges().size() > 0) {
    std::size_t begin = 0;
    auto edges = slots.ring_edges();
    edges.push_back(slots.size());
    for (std::size_t r = 0; r < edges.size(); begin = edges[r++]) {
      const double middle = grid.top + static_cast<double>(begin + edges[r]) / 2 * high;
      if (static_cast<double>(edges[r] - begin) * high >= 11) chart.number("ring " + std::to_string(r), middle + 4, palette::quiet);
    }
  }
  for (const auto& m : view.marks) {  // nobody waits there any more
    const auto row = std::ranges::find_if(slots, [&](const auto& s) { return m.lost && s.count == 1 && s.first == m.lost->index(); });
    if (row == slots.end()) continue;
    const double y = grid.top + (static_cast<double>(row - slots.begin()) + 0.5) * high, x = chart.axis().at(m.from_s);
    chart.plot.open_group(" class=\"mark fault\"");
    chart.plot.rect(x, y - 1, chart.axis().at(view.duration_s) - x, std::min(2.0, high), "currentColor", m.words);
    chart.plot.close_group();
  }
  const double bottom = grid.top + grid.height;
  chart.plot.raw(mark_lines(chart, view, top, bottom));
  const auto ticks = clock_ticks(chart.axis());
  std::string note;
  if (slots.most_servers() > 1)
    note = "<p class=\"note\">A row is up to " + std::to_string(slots.most_servers()) + " neighbours; the fullest of them is shown.</p>\n";
  return "<div class=\"legend\">" + heat_legend("queue", "1", short_number(grid.most.front()) + " requests waiting") + "</div>\n" +
         scrolling(std::move(chart).finish("queue-map", "Requests waiting over time", top, bottom, ticks, {})) + note;
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
