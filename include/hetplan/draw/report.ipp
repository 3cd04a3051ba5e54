// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/groups_chart.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_candidates.hpp>
#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/tasks/critical_path.hpp>

namespace hetplan::draw::detail {

// The report's curves: how much of each resource is used over time, and of each device's memory.

/// Bandwidth by resource, stacked by kind of transfer; "" where nothing was sent.
[[nodiscard]] std::string bandwidth_chart(const report_run& run);

/// Memory by used device: state held all the time, activations on top, and the limit.
[[nodiscard]] std::string memory_chart(const report_run& run);

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

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

namespace detail {

/// What was planned, and the numbers that matter.
[[nodiscard]] HETPLAN_INLINE std::string report_header(const plan_result& result, const planning_graph& model, const cluster& c,
                                                       const evaluation* e) {
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(model.name() + " on " + c.name()) + "</h1>\n<p class=\"quiet\">";
  if (!result.plans.empty()) {
    const plan& p = result.plans.front();
    text += "planner " + xml_text(p.planner) + " · " + std::string(to_string(p.workload.mode)) + " · " + std::to_string(p.microbatches) +
            (p.microbatches == 1 ? " microbatch of " : " microbatches of ") + std::to_string(p.microbatch_size) + " · ";
    if (p.workload.mode == mode::generation) text += std::to_string(p.workload.tokens) + " tokens · ";
    text += "schedule " + std::string(to_string(p.schedule.kind)) + " · network " + std::string(to_string(p.sharing_policy)) + " · ";
    if (p.transfers == transfer_mode::block) text += "transfers block (they are in the tasks at both ends) · ";
  }
  text += std::to_string(model.size()) + (model.size() == 1 ? " layer" : " layers") + " · " + std::to_string(c.size()) +
          (c.size() == 1 ? " device" : " devices");
  if (result.candidates > 0)
    text += " · " + std::to_string(result.candidates) + (result.candidates == 1 ? " candidate judged" : " candidates judged");
  text += "</p>\n";
  if (!result.status.ok())
    text += "<p id=\"status\" class=\"alarm\"><strong>" + std::string(to_string(result.status.result)) +
            "</strong>: " + xml_text(result.status.reason) + "</p>\n";
  if (result.status.proof) text += "<pre id=\"proof\">" + xml_text(describe(*result.status.proof)) + "</pre>\n";
  if (e == nullptr) return text + "</header>\n";
  text += "<div class=\"facts\">\n";
  if (e->time_between_tokens) text += fact(engineering(e->time_between_tokens->value(), "s"), "between tokens", "fact-tokens");
  text += fact(engineering(e->latency.value(), "s"), e->time_between_tokens ? "latency, all tokens" : "latency", "fact-latency");
  text += fact(engineering(e->energy().value(), "J"), "energy of one run", "fact-energy");
  if (e->bound.value() > 0)
    text += fact(at_most(e->gap), "slower than the best plan: none is faster than " + engineering(e->bound.value(), "s"), "fact-gap");
  if (e->placement_bound.value() > 0)
    text += fact(at_most(gap_to(e->latency, e->placement_bound)),
                 "slower than the best schedule of single operators, the whole batch at once, whole transfers by the same rules: none is "
                 "faster than " +
                     engineering(e->placement_bound.value(), "s"),
                 "fact-placement-gap");
  if (const seconds own = std::max(e->schedule_bound, e->contention_bound); own.value() > 0)
    text += fact(at_most(gap_to(e->latency, own)),
                 "slower than this plan can be: no schedule of it is faster than " + engineering(own.value(), "s"), "fact-schedule-gap");
  if (const auto broken = find_broken_limit(*e, c)) text += fact("breaks a limit", to_string(*broken, c), "fact-limit", true);
  text +=
      "</div>\n<nav><a href=\"#plan\">plan</a><a href=\"#timeline\">timeline</a><a href=\"#critical\">critical path</a><a "
      "href=\"#bandwidth\">bandwidth</a>"
      "<a href=\"#memory\">memory</a><a href=\"#energy\">energy</a><a href=\"#pareto\">latency and energy</a></nav>\n";
  return text + "</header>\n";
}

/// Which limit binds, and what there would be to share.
[[nodiscard]] HETPLAN_INLINE std::string no_plan_section(const plan_result& result, const planning_graph& model, const cluster& c) {
  const double weights = model.parameters() * model.bytes_per_parameter();
  double usable = 0;
  std::string text =
      "<table id=\"limits\">\n<thead><tr><th>Device</th><th class=\"n\">Memory that a plan may use</th><th>The candidate that came "
      "nearest</th></tr></thead>\n<tbody>\n";
  for (const device& d : c.devices()) {
    usable += d.usable_memory().value();
    const bool binds = result.binding && result.binding->device == d.id;
    text += "<tr>" + cell(d.name) + cell(engineering(d.usable_memory().value(), "B"), " class=\"n\"") +
            cell(binds ? to_string(*result.binding, c) : std::string(), binds ? " class=\"alarm\"" : "") + "</tr>\n";
  }
  text += "</tbody></table>\n<p class=\"note\">The model's weights alone are " + engineering(weights, "B") +
          "; all devices together may use " + engineering(usable, "B") +
          ". Training also holds gradients, the optimizer's state and activations.</p>\n";
  const std::string about = result.status.result == outcome::stopped      ? "The search was stopped before it had found one."
                            : result.status.result == outcome::infeasible ? "No plan keeps every limit: see the proof."
                                                                          : "None of the plans that were tried keeps every limit.";
  return section("no-plan", "No plan", about, text);
}

/// Of a plan that was made across regions: which there are, by a mean boundary of its microbatches. Where devices have no rates that tell
/// classes apart, none.
[[nodiscard]] HETPLAN_INLINE std::string regions_section(const plan& p, const planning_graph& model, const cluster& c) {
  const bool rated = std::ranges::all_of(c.devices(), [](const device& d) { return d.compute.value() > 0; });
  if (!p.planner.starts_with("deepcee") || c.size() < 2 || !rated || model.edges().empty()) return {};
  double total = 0;
  for (const layer_edge& e : model.edges()) total += e.forward.value();
  const groups_source from{.message = bytes(p.microbatch_size * total / static_cast<double>(model.edges().size()))};
  return groups_section(coarsen::group_devices(c, from.message, coarsen::compute_scores(c.devices()), from.thresholds), c, from);
}

}  // namespace detail

HETPLAN_INLINE std::string report_html(const plan_result& result, const planning_graph& model, const cluster& c, const judgement& best,
                                       const report_options& options) {
  const std::string title = model.name() + " on " + c.name();
  if (result.plans.empty()) {
    std::string body = detail::report_header(result, model, c, nullptr);
    return detail::page(title, body + detail::no_plan_section(result, model, c));
  }
  const plan& p = result.plans.front();
  const evaluation& e = p.predicted ? *p.predicted : best.evaluation;
  const detail::report_run run(p, c, best, options.max_bars);
  std::string body = detail::report_header(result, model, c, &e);
  body +=
      "<svg width=\"0\" height=\"0\" style=\"position:absolute;min-width:0\" aria-hidden=\"true\"><defs><pattern id=\"hetplan-sync\" "
      "width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"" +
      palette::transfer_color(transfer_kind::sync).hex() +
      "\"/><rect width=\"1.5\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.55\"/></pattern></defs></svg>\n";
  body += detail::section("plan", "Plan", "Which layers run where.", detail::plan_table(run, model));
  body += detail::regions_section(p, model, c);
  std::string incomplete;
  if (!best.trace.status.ok()) incomplete = "<p class=\"alarm\">Incomplete: " + xml_text(best.trace.status.reason) + ".</p>\n";
  body += detail::section("timeline", "Timeline",
                          "Who computes what when, and how the network is shared meanwhile. Thin strips below a device are what it sends; "
                          "heights in a network row are shares of its capacity.",
                          incomplete +
                              "<div class=\"tools\"><button id=\"zoom-in\" type=\"button\">Zoom in</button><button id=\"zoom-out\" "
                              "type=\"button\">Zoom out</button><button id=\"pan-left\" type=\"button\" aria-label=\"earlier\">◀</button>"
                              "<button id=\"pan-right\" type=\"button\" aria-label=\"later\">▶</button><button id=\"zoom-reset\" "
                              "type=\"button\">Whole run</button>"
                              "<button id=\"mark-critical\" type=\"button\" aria-pressed=\"false\">Mark critical path</button><span "
                              "class=\"note\">Drag to zoom to a span, Ctrl + wheel to zoom, Shift + wheel to move; double-click for the "
                              "whole run. All charts over time move together.</span></div>\n" +
                              detail::scrolling(detail::report_timeline(run).paint()));
  body += detail::section(
      "critical", "Critical path",
      "From the last end back to the start, always to what was waited for last. Every moment of the run belongs to one link.",
      detail::critical_section(run));
  const std::string bandwidth = detail::bandwidth_chart(run);
  body += detail::section(
      "bandwidth", "Bandwidth", "Use of each network resource, stacked by kind of transfer; dashed: its capacity.",
      bandwidth.empty() ? "<p class=\"note\">No transfer uses a network resource in this run.</p>\n" : detail::scrolling(bandwidth));
  body += detail::section(
      "memory", "Memory",
      "Light: held for the whole run (weights, gradients, optimizer, cache). Dark: activations. Dashed: what a plan may use.",
      detail::scrolling(detail::memory_chart(run)));
  body += detail::section("energy", "Energy", "Of one run, by device that is used.", detail::scrolling(detail::energy_chart(run, e)));
  body += detail::section("pareto", "Latency and energy",
                          "The plans that were kept, numbered from the best by the job's objective. Hover over a point to see its stages.",
                          detail::scrolling(detail::pareto_chart(result.plans, c)));
  return detail::page(title, body);
}

}  // namespace hetplan::draw
