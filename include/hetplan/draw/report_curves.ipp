// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_curves.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/report_time_chart.hpp>
#include <hetplan/plan/limits.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// One kind of transfer over a resource: an area on top of the kinds before it, with the very steps of the run.
[[nodiscard]] HETPLAN_INLINE std::string load_outline(const std::vector<resource_load>& loads, std::size_t kind, const time_axis& axis,
                                                      row_box box, double full) {
  const auto below = [&](const resource_load& l) {
    double sum = 0;
    for (std::size_t k = 0; k < kind; ++k) sum += l.kinds[k];
    return sum;
  };
  std::string d;
  for (std::size_t i = 0; i < loads.size();) {
    if (loads[i].kinds[kind] <= 0) {
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    while (end < loads.size() && loads[end].start_s == loads[end - 1].end_s && loads[end].kinds[kind] > 0) ++end;
    d += "M" + fixed(axis.at(loads[i].start_s)) + " " + fixed(box.level(below(loads[i]) / full), 1);
    for (std::size_t k = i; k < end; ++k)
      d += "V" + fixed(box.level((below(loads[k]) + loads[k].kinds[kind]) / full), 1) + "H" + fixed(axis.at(loads[k].end_s));
    for (std::size_t k = end; k-- > i;) d += "V" + fixed(box.level(below(loads[k]) / full), 1) + "H" + fixed(axis.at(loads[k].start_s));
    d += "Z";
    i = end;
  }
  return d;
}

HETPLAN_INLINE std::string bandwidth_chart(const report_run& run) {
  std::vector<resource_view> views = run.resources;
  const std::size_t hidden = keep_busiest(views, run.cluster, run.judgement.trace, 16);
  if (views.empty()) return {};
  time_chart chart(run.latency_s());
  double y = 10;
  const double height = views.size() <= 4 ? 70 : 44;
  bool averaged = false;
  for (const resource_view& r : views) {
    const resource& net = run.cluster.network()[r.resource];
    const row_box box{y, height};
    const double full = std::max(1.0, r.peak), capacity = 8 * net.capacity.value();
    chart.name(net.name, {}, y, height);
    chart.level(r.recorded ? engineering(full * capacity, "bit/s") : "all", y + 8);
    chart.level("0", y + height);
    chart.plot.rect(chart.axis().left, y, chart.axis().width, height, palette::track.hex());
    pixel_areas<transfer_kind_count> areas(chart.axis(), box);
    std::array<std::string, transfer_kind_count> fills, hovers;
    const bool exact = !run.merged;
    averaged = averaged || !exact;
    for (std::size_t k = 0; k < transfer_kind_count; ++k) {
      double bytes = 0;
      for (const resource_load& l : r.loads) bytes += l.kinds[k] * (l.end_s - l.start_s) * net.capacity.value();
      fills[k] = transfer_fill(static_cast<transfer_kind>(k));
      hovers[k] = std::string(to_string(static_cast<transfer_kind>(k))) + " transfers over " + net.name;
      if (r.recorded)
        hovers[k] += "\n" + engineering(bytes, "B") + " in the whole run, " +
                     fixed(100 * bytes / (net.capacity.value() * chart.axis().latency_s), 1) + " % of the capacity";
      if (exact) {
        if (const std::string d = load_outline(r.loads, k, chart.axis(), box, full); !d.empty()) chart.plot.path(d, fills[k], hovers[k]);
      } else {
        for (const resource_load& l : r.loads) areas.add(k, l.start_s, l.end_s, l.kinds[k] / full);
      }
    }
    if (!exact) areas.paint(chart.plot, fills, hovers);
    const double top = box.level(1 / full);
    chart.plot.line(chart.axis().left, top, chart.axis().left + chart.axis().width, top, palette::activations, 1,
                    " stroke-dasharray=\"4 3\"");
    double most = 0;
    for (const resource_load& l : r.loads) most = std::max(most, l.share());
    if (r.recorded) {
      const double mean = run.judgement.trace.resource_bytes[r.resource.index()] / chart.axis().latency_s;
      chart.number("mean " + engineering(8 * mean, "bit/s"), y + height / 2 - 3);
      chart.number("peak " + fixed(100 * most, 0) + " %", y + height / 2 + 12, palette::quiet);
    }
    y += height + 14;
  }
  std::string notes;
  if (averaged) notes += "<p class=\"note\">Simplified: rates that change more often than a pixel are averaged.</p>\n";
  if (!views.front().recorded) notes += "<p class=\"note\">Rates were not recorded: heights only count transfers.</p>\n";
  if (hidden > 0)
    notes += "<p class=\"note\">The " + std::to_string(views.size()) + " busiest resources are shown, " + std::to_string(hidden) +
             " quieter ones are not.</p>\n";
  return std::move(chart).finish("bandwidth-chart", "Bandwidth over time", 6, y) + notes;
}

HETPLAN_INLINE std::string memory_chart(const report_run& run) {
  time_chart chart(run.latency_s());
  row_painter rows(chart.plot, run.plan, run.cluster, run.judgement, run.view, chart.axis(), run.judgement.trace.memory.size() > 6000);
  double y = 10;
  std::size_t devices = 0;
  for (const device& d : run.cluster.devices()) devices += run.used(d.id) ? 1U : 0U;
  const double height = devices <= 6 ? 54 : 34;
  for (const device& d : run.cluster.devices()) {
    if (!run.used(d.id)) continue;
    const double usable = d.usable_memory().value(), peak = run.judgement.trace.peak_bytes[d.id.index()], full = std::max(usable, peak);
    const row_box box{y, height};
    chart.name(d.name, {}, y, height);
    chart.level(engineering(full, "B"), y + 8);
    chart.level("0", y + height);
    rows.memory(d.id, box);
    const double limit = box.level(usable / full);
    chart.plot.line(chart.axis().left, limit, chart.axis().left + chart.axis().width, limit, palette::alarm, 1,
                    " stroke-dasharray=\"6 3\"");
    chart.number("peak " + engineering(peak, "B"), y + height / 2 - 3, peak > memory_limit_bytes(d) ? palette::alarm : palette::ink);
    chart.number("limit " + engineering(usable, "B"), y + height / 2 + 12, palette::quiet);
    y += height + 14;
  }
  if (devices == 0) return "<p class=\"note\">No device is used.</p>\n";
  std::string note;
  if (run.judgement.trace.memory.empty()) note = "<p class=\"note\">Memory was not recorded, or nothing but state is held.</p>\n";
  return std::move(chart).finish("memory-chart", "Memory over time", 6, y) + note;
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
