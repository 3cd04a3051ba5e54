// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/slice.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/groups_chart.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/plan/describe.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::draw::detail {

[[nodiscard]] HETPLAN_INLINE std::string meters(const report_run& run, const device& d) {
  const double peak = run.judgement.trace.peak_bytes[d.id.index()], usable = d.usable_memory().value();
  const double busy = run.latency_s() > 0 ? run.judgement.trace.busy_s[d.id.index()] / run.latency_s() : 0;
  return meter(peak / usable, peak > memory_limit_bytes(d), engineering(peak, "B") + " of " + engineering(usable, "B")) +
         meter(busy, false, fixed(100 * busy, 0) + " %") + "</tr>\n";
}

/// Returns the table of a plan with a stage for every operator: a row per device.
[[nodiscard]] HETPLAN_INLINE std::string device_table(const report_run& run, const planning_graph& model) {
  std::string text =
      "<table id=\"stages\">\n<thead><tr><th>Device</th><th class=\"n\">Stages</th><th class=\"n\">Layers</th><th class=\"n\">FLOP of a "
      "sample</th><th>Memory of the device</th><th>Busy</th></tr></thead>\n<tbody>\n";
  for (const device& d : run.cluster.devices()) {
    std::size_t stages = 0, layers = 0;
    double flop = 0;
    for (const stage& s : run.plan.stages) {
      if (s.devices.front().device != d.id) continue;
      ++stages, layers += s.layers.size();
      for (const layer_id l : s.layers) flop += model[l].forward_flops.value();
    }
    if (stages == 0) continue;
    text += "<tr>" + cell(d.name) + cell(std::to_string(stages), " class=\"n\"") + cell(std::to_string(layers), " class=\"n\"") +
            cell(engineering(flop, "FLOP"), " class=\"n\"") + meters(run, d);
  }
  return text + "</tbody></table>\n<p class=\"note\">" + std::to_string(run.plan.stages.size()) + " stages: a row for each device.</p>\n";
}

/// Returns the table of a plan: stages with layers, samples, accelerators, memory against its limit, and busy share per device.
[[nodiscard]] HETPLAN_INLINE std::string plan_table(const report_run& run, const planning_graph& model) {
  const hetplan::plan& p = run.plan;
  constexpr std::size_t most_rows = 40;
  const bool single = std::all_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return s.devices.size() == 1; });
  if (single && p.pipeline_count() == 1 && p.stages.size() > most_rows) return device_table(run, model);
  std::string text =
      "<table id=\"stages\">\n<thead><tr><th>Stage</th><th class=\"n\">Layers</th><th>From … to</th><th>Device</th><th "
      "class=\"n\">Samples</th>";
  const bool parallel = std::any_of(p.stages.begin(), p.stages.end(), [](const stage& s) {
    return std::any_of(s.devices.begin(), s.devices.end(), [](const assignment& a) { return a.tensor_parallel > 1; });
  });
  if (parallel) text += "<th class=\"n\">Tensor parallel</th>";
  text += "<th>Memory of the device</th><th>Busy</th></tr></thead>\n<tbody>\n";
  for (const auto& [s, here] : ranges::views::enumerate(p.stages)) {
    const std::string rows = " rowspan=\"" + std::to_string(here.devices.size()) + "\"";
    for (const auto& [i, a] : ranges::views::enumerate(here.devices)) {
      const device& d = run.cluster[a.device];
      text += "<tr>";
      if (i == 0) {
        std::string name = run.view.stage_name(stage_id(s));
        if (here.recomputes()) name += here.recompute == recomputation::blocks ? ", recomputes blocks" : ", recomputes";
        if (here.state_shards() > 1) name += ", optimizer state in " + std::to_string(here.state_shards()) + " parts";
        name += describe_offload(here, model);
        if (p.pipeline_count() > 1) name += " (pipeline " + std::to_string(here.pipeline) + ")";
        const auto layer = [&](layer_id l) { return fitted(model[l].name, 28); };
        const std::string range = here.layers.empty()       ? ""
                                  : here.layers.size() == 1 ? layer(here.layers.front())
                                                            : layer(here.layers.front()) + " … " + layer(here.layers.back());
        text += cell(name, rows) + cell(std::to_string(here.layers.size()), rows + " class=\"n\"") + cell(range, rows);
      }
      text += cell(d.name) + cell(std::to_string(a.samples) + " of " + std::to_string(p.size_of(here)), " class=\"n\"");
      if (parallel) text += cell(std::to_string(a.tensor_parallel), " class=\"n\"");
      text += meters(run, d);
    }
  }
  text +=
      "</tbody></table>\n<p class=\"note\">Samples: of each microbatch. Memory and busy share are the device's, all its stages together.";
  if (p.parameter_server) text += " Parameter server: " + xml_text(run.cluster[*p.parameter_server].name) + ".";
  return text + "</p>\n";
}

/// A part of a bar.
struct bar_part {
  std::string name;
  color fill;
  double amount = 0;  ///< from 0 to 1, the whole bar
  std::string hover = {};
};

/// Rows of stacked bars, one below the other.
class stacked_bars {
 public:
  static constexpr double width = 1180, left = 172, right = 168, row = 30;

  void add(std::string_view name, const std::vector<bar_part>& parts, std::string_view about, bool alarm = false) {
    const double full = width - left - right, y = 8 + row * static_cast<double>(rows_++);
    out_.text(0, y + 15, fitted(name, 22), {.size = 12.5, .weight = 600});
    out_.rect(left, y, full, row - 10, palette::track.hex());
    double at = 0;
    for (const bar_part& p : parts) {
      const double wide = std::min(p.amount, 1 - at);
      if (wide > 0) {
        out_.rect(left + full * at, y, full * wide, row - 10, p.fill.hex(), p.hover);
        if (svg_writer::text_width(p.name, 10.5) + 8 < full * wide)
          out_.text(left + full * (at + wide / 2), y + 14, p.name, {.size = 10.5, .fill = palette::text_on(p.fill), .anchor = "middle"},
                    " pointer-events=\"none\"");
      }
      at += std::max(0.0, wide);
    }
    out_.text(width, y + 15, about, {.size = 11, .fill = alarm ? palette::alarm : palette::ink, .anchor = "end"});
  }
  [[nodiscard]] std::string finish(std::string_view label, const std::string& id) && {
    return std::move(out_).embedded(width, row * rows_ + 8, label, " id=\"" + id + "\"");
  }

 private:
  svg_writer out_;
  int rows_ = 0;
};

/// Returns the colour of a use; waiting is no work, so it is hardly there.
[[nodiscard]] HETPLAN_INLINE color fill_of(time_use u) {
  switch (u) {
    case time_use::compute: return palette::phase_color(phase::forward, 0, 1);
    case time_use::weights: return {221, 132, 45};
    case time_use::activations: return {240, 196, 140};
    case time_use::cache: return {96, 158, 88};
    case time_use::tiers: return {176, 58, 72};
    case time_use::overhead: return palette::activations;
    case time_use::network: return {138, 96, 168};
    case time_use::waiting: break;
  }
  return palette::grid;
}

/// Returns the colour of a part of the memory, that of the time it takes to read where there is one.
[[nodiscard]] HETPLAN_INLINE color fill_of(std::string_view part) {
  for (const time_use u : {time_use::weights, time_use::cache, time_use::activations, time_use::overhead}) {
    if (part == to_string(u)) return fill_of(u);
  }
  return palette::held;
}

/// Returns a chart for each stretch of the run, with a bar of shares per used device, and one of its memory: a bar up to what a plan may
/// use.
[[nodiscard]] HETPLAN_INLINE std::string limits_charts(const run_explanation& x, const cluster& c, const evaluation& e) {
  std::string text = "<div class=\"legend\">";
  for (const time_use u : time_uses) {
    const bool any = std::ranges::any_of(
        x.stretches, [&](const run_stretch& r) { return std::ranges::any_of(r.devices, [&](const use_seconds& s) { return s[u] > 0; }); });
    if (any) text += "<span>" + swatch(fill_of(u).hex()) + std::string(to_string(u)) + "</span>";
  }
  text += "</div>\n";
  for (const run_stretch& r : x.stretches) {
    const std::string name(r.name), whole = engineering(r.length_s(), "s");
    text += "<h3>" +
            std::string(name == "prompt"   ? "Prompt, until every sequence has its first token"
                        : name == "tokens" ? "Tokens"
                                           : "The run") +
            ": " + whole + "</h3>\n";
    stacked_bars bars;
    for (const device& d : c.devices()) {
      if (!e.devices[d.id.index()].used) continue;
      std::vector<bar_part> parts;
      named_share most{time_use::waiting, std::string(to_string(time_use::waiting)), r.share(d.id, time_use::waiting)};
      for (const named_share& u : shares_of(r, d)) {
        parts.push_back(
            {u.name, fill_of(u.use), u.share,
             d.name + ": " + u.name + "\n" + engineering(u.share * r.length_s(), "s") + " of " + whole + ", " + percent(u.share)});
        if (u.share > most.share) most = u;
      }
      bars.add(d.name, parts, most.name + " " + percent(most.share));
    }
    text += std::move(bars).finish("What limits each device: " + name, "limits-" + name) + "\n";
  }
  text += "<h3>Memory</h3>\n<div class=\"legend\">";
  for (const memory_part& m : parts_of(device_memory{})) {
    const bool any = std::ranges::any_of(x.memory, [&](const device_memory& mine) {
      return std::ranges::any_of(parts_of(mine), [&](const memory_part& p) { return p.name == m.name && p.bytes > 0; });
    });
    if (any) text += "<span>" + swatch(fill_of(m.name).hex()) + std::string(m.name) + "</span>";
  }
  text += "</div>\n";
  stacked_bars bars;
  for (const device& d : c.devices()) {
    if (!e.devices[d.id.index()].used) continue;
    const device_memory& mine = x.memory[d.id.index()];
    const double usable = d.usable_memory().value(), full = std::max(usable, mine.all());
    std::vector<bar_part> parts;
    for (const memory_part& m : parts_of(mine))
      parts.push_back({std::string(m.name), fill_of(m.name), full > 0 ? m.bytes / full : 0,
                       d.name + ": " + std::string(m.name) + "\n" + engineering(m.bytes, "B") + " of " + engineering(usable, "B")});
    bars.add(d.name, parts, engineering(mine.all(), "B") + " of " + engineering(usable, "B"), !hetplan::at_most(mine.all(), usable));
  }
  return text + std::move(bars).finish("What the memory of each device is for", "memory-parts");
}

struct chain_row {
  std::size_t first = 0, count = 1;
};

/// Returns the rows of the table of links. Consecutive tasks of a device share a row.
[[nodiscard]] HETPLAN_INLINE std::vector<chain_row> chain_rows(const report_run& run) {
  std::vector<chain_row> rows;
  const auto& g = run.judgement.graph;
  for (const auto& [i, l] : ranges::views::enumerate(run.chain)) {
    const bool follows =
        i > 0 && g.is_compute(l.node) && g.is_compute(l.because) && g.computes[l.node].device == g.computes[l.because].device;
    if (follows) ++rows.back().count;
    else rows.push_back({i, 1});
  }
  return rows;
}

/// Returns the section on the critical path: seconds by category, then link by link with the reason of each wait.
[[nodiscard]] HETPLAN_INLINE std::string critical_section(const report_run& run) {
  const auto& g = run.judgement.graph;
  const double latency = run.latency_s(), whole = latency > 0 ? latency : 1;
  std::array<double, critical_part_count> total{};
  for (const critical_link& l : run.chain) {
    const auto parts = parts_of(l, g.is_compute(l.node));
    for (auto&& [sum, part] : ranges::views::zip(total, parts)) sum += part;
  }
  std::string bar = "<div class=\"share\" role=\"img\" aria-label=\"shares of the critical path\">",
              legend = "<table id=\"critical-totals\"><tbody>\n";
  for (std::size_t p = 0; p < critical_part_count; ++p) {
    const critical_part_style style = style_of(static_cast<critical_part>(p));
    const double share = 100 * total[p] / whole;
    if (share > 0) bar += "<i style=\"width:" + fixed(share, 3) + "%;background-color:" + style.fill.hex() + "\"></i>";
    legend += "<tr><td>" + swatch(style.fill.hex()) + std::string(style.name) + "</td><td class=\"n\">" +
              (share > 0 && share < 0.05 ? "&lt;0.1" : fixed(share, 1)) + " %</td><td class=\"n\">" + engineering(total[p], "s") +
              "</td><td class=\"quiet\">" + std::string(style.about) + "</td></tr>\n";
  }
  constexpr std::size_t most_rows = 200;
  const std::vector<chain_row> rows = chain_rows(run);
  std::string text = bar + "</div>\n" + legend + "</tbody></table>\n<details open><summary>Link by link (" +
                     std::to_string(run.chain.size()) + (run.chain.size() == 1 ? " link" : " links") +
                     "; click a row to zoom to it)</summary>\n<div class=\"scroll\"><table id=\"critical-links\"><thead><tr><th "
                     "class=\"n\">From</th><th class=\"n\">Lasts</th>"
                     "<th>What</th><th>Why it did not start earlier</th><th class=\"n\">Latency</th><th class=\"n\">Lost to "
                     "sharing</th></tr></thead>\n<tbody>\n";
  for (const chain_row& row : rows | ranges::views::take(most_rows)) {
    const auto links = run.chain | ranges::views::slice(row.first, row.first + row.count);
    const critical_link &first = links.front(), &last = links.back();
    double latency_s = 0, lost_s = 0;
    for (const critical_link& l : links) latency_s += l.latency_s, lost_s += l.lost_s;
    const bool compute = g.is_compute(first.node);
    std::string what = run.view.node_name(first.node);
    if (row.count > 1) {
      what = std::to_string(row.count) + " tasks on " + run.view.device_name(g.computes[first.node].device) + ": " +
             run.view.compute_name(first.node) + " … " + run.view.compute_name(last.node);
    }
    std::string why = run.why(first.node);
    if (first.held_s > 0) why += ", held back for " + engineering(first.held_s, "s");
    const auto seconds_or_none = [](double s) { return s > 0 ? engineering(s, "s") : std::string(); };
    text += "<tr tabindex=\"0\" class=\"" + std::string(compute ? "compute" : "transfer") + "\" data-from=\"" +
            fixed(first.start_s / whole, 7) + "\" data-to=\"" + fixed(last.end_s / whole, 7) + "\">" +
            cell(engineering(first.start_s, "s"), " class=\"n\"") + cell(engineering(last.end_s - first.start_s, "s"), " class=\"n\"") +
            cell(what) + cell(why.empty() ? "start of the run" : why) + cell(compute ? "" : seconds_or_none(latency_s), " class=\"n\"") +
            cell(seconds_or_none(lost_s), " class=\"n" + std::string(lost_s > 0 ? " lost" : "") + "\"") + "</tr>\n";
  }
  text += "</tbody></table></div></details>\n";
  if (rows.size() > most_rows)
    text += note("Simplified: " + std::to_string(rows.size() - most_rows) + " later rows are left out of the table, not of the totals.");
  return text;
}

/// Returns the energy by used device, split into its parts if linear_power is the energy model.
[[nodiscard]] HETPLAN_INLINE std::string energy_chart(const report_run& run) {
  const evaluation& e = run.evaluation;
  constexpr double width = 1180, left = 172, right = 132, row = 30;
  constexpr std::array<std::string_view, 3> names{"idle power, all the time", "computing, beyond idle", "sending and receiving"};
  const std::array<color, 3> fills{palette::held, palette::phase_color(phase::forward, 0, 1),
                                   palette::transfer_color(transfer_kind::forward)};
  double most = 0;
  bool split = true;
  std::vector<std::pair<const device*, std::array<double, 3>>> rows;
  for (const device& d : run.cluster.devices()) {
    const std::size_t i = d.id.index();
    if (i >= e.devices.size() || !e.devices[i].used) continue;
    const trace& t = run.judgement.trace;
    const std::array<double, 3> parts{
        d.power.idle.value() * run.latency_s(),
        linear_power{}.energy({.busy = seconds(t.busy_s[i]), .memory_bound = seconds(t.memory_bound_s[i])}, d).value(),
        d.power.send.value() * t.sent_bytes[i] + d.power.receive.value() * t.received_bytes[i]};
    const double total = e.devices[i].energy.value();
    split = split && std::abs(parts[0] + parts[1] + parts[2] - total) <= 1e-9 * total;
    rows.emplace_back(&d, parts);
    most = std::max(most, total);
  }
  if (rows.empty() || most <= 0) return note("No energy is charged: the devices have no power profile.");
  svg_writer out;
  const double height = row * static_cast<double>(rows.size()) + 8, step = round_step(most, 8);
  const auto at = [&](double joules) { return left + (width - left - right) * joules / most; };
  for (int i = 0; i * step <= most * (1 + 1e-9); ++i) {
    out.line(at(i * step), 4, at(i * step), height, palette::grid);
    out.text(at(i * step), height + 16, engineering(i * step, "J"), {.fill = palette::quiet, .anchor = "middle"});
  }
  double y = 8;
  for (const auto& [d, parts] : rows) {
    const double total = e.devices[d->id.index()].energy.value();
    out.text(0, y + 15, fitted(d->name, 22), {.size = 12.5, .weight = 600});
    double sum = 0;
    for (std::size_t k = 0; split && k < 3; ++k) {
      if (parts[k] <= 0) continue;
      out.rect(at(sum), y, at(sum + parts[k]) - at(sum), row - 10, fills[k].hex(),
               d->name + ": " + std::string(names[k]) + "\n" + engineering(parts[k], "J") + ", " + fixed(100 * parts[k] / total, 1) + " %");
      sum += parts[k];
    }
    if (!split) out.rect(at(0), y, at(total) - at(0), row - 10, fills[1].hex(), d->name + ": " + engineering(total, "J"));
    out.text(width, y + 15, engineering(total, "J"), {.size = 11, .anchor = "end"});
    y += row;
  }
  std::string legend = "<div class=\"legend\">";
  for (std::size_t k = 0; split && k < 3; ++k) legend += "<span>" + swatch(fills[k].hex()) + std::string(names[k]) + "</span>";
  if (!split) legend += "<span>The energy model of this run has no parts of its own: totals only.</span>";
  return legend + "</div>\n" + std::move(out).embedded(width, height + 26, "Energy by device", " id=\"energy-chart\"");
}

HETPLAN_INLINE std::vector<candidate_point> candidate_points(const std::vector<ranked_plan>& plans) {
  std::vector<candidate_point> all;
  for (const auto& [i, p] : ranges::views::enumerate(plans))
    all.push_back({i, p.evaluation.response().value(), p.evaluation.energy().value()});
  for (candidate_point& a : all) {
    a.dominated = std::any_of(all.begin(), all.end(), [&](const candidate_point& b) {
      return b.response_s <= a.response_s && b.energy_J <= a.energy_J && (b.response_s < a.response_s || b.energy_J < a.energy_J);
    });
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE std::string candidate_text(const ranked_plan& candidate, const candidate_point& c, const cluster& devices) {
  const auto& [p, e] = candidate;
  std::string text = (c.rank == 0 ? "best plan" : "plan " + std::to_string(c.rank + 1)) + ": " + engineering(c.response_s, "s") +
                     (e.time_between_tokens ? " per token, " : ", ") + engineering(c.energy_J, "J");
  for (const stage& s : p.stages) {
    text += "\n" + std::to_string(s.layers.size()) + (s.layers.size() == 1 ? " layer on " : " layers on ");
    text += io::joined(s.devices | ranges::views::transform([&](const assignment& a) { return devices[a.device].name; }));
  }
  return text + "\n" + describe_microbatches(p) +
         (c.dominated ? "\nanother plan is no worse in both" : "\non the front: no other plan is better in both");
}

HETPLAN_INLINE std::string pareto_chart(const std::vector<ranked_plan>& plans, const cluster& devices) {
  constexpr double width = 1180, height = 360, left = 80, right = 24, top = 30, bottom = 52;
  std::vector<candidate_point> points = candidate_points(plans);
  double x0 = points[0].response_s, x1 = x0, y0 = points[0].energy_J, y1 = y0;
  for (const candidate_point& c : points)
    x0 = std::min(x0, c.response_s), x1 = std::max(x1, c.response_s), y0 = std::min(y0, c.energy_J), y1 = std::max(y1, c.energy_J);
  const auto widen = [](double& low, double& high) {
    const bool apart = high - low > 1e-9 * std::abs(high);  // else the step of ticks would be below the resolution of doubles
    const double room = apart ? 0.12 * (high - low) : high == 0 ? 1 : std::max(0.1 * std::abs(high), 1e-9);
    low = std::max(0.0, low - room), high += room;
  };
  widen(x0, x1), widen(y0, y1);
  const auto at_x = [&](double v) { return left + (width - left - right) * (v - x0) / (x1 - x0); };
  const auto at_y = [&](double v) { return height - bottom - (height - top - bottom) * (v - y0) / (y1 - y0); };
  const auto tick_text = [](double v, double step, double largest, const std::string& unit) {  // one unit for all ticks of an axis
    const bool small = unit == "s" && largest < 1, large = unit == "J" && largest >= 1e4;
    const double scale = large ? 1e3 : !small ? 1 : largest >= 1e-3 ? 1e-3 : 1e-6;
    const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step / scale) + 1e-9)), 0, 9);
    return fixed(v / scale, decimals) + (large ? " k" : !small ? " " : largest >= 1e-3 ? " m" : " µ") + unit;
  };
  svg_writer out;
  const double step_x = round_step(x1 - x0, 8), step_y = round_step(y1 - y0, 6);
  for (double i = std::ceil(x0 / step_x); i * step_x <= x1; ++i) {
    out.line(at_x(i * step_x), top, at_x(i * step_x), height - bottom, palette::grid);
    out.text(at_x(i * step_x), height - bottom + 18, tick_text(i * step_x, step_x, x1, "s"), {.fill = palette::quiet, .anchor = "middle"});
  }
  for (double i = std::ceil(y0 / step_y); i * step_y <= y1; ++i) {
    out.line(left, at_y(i * step_y), width - right, at_y(i * step_y), palette::grid);
    out.text(left - 8, at_y(i * step_y) + 4, tick_text(i * step_y, step_y, y1, "J"), {.fill = palette::quiet, .anchor = "end"});
  }
  const bool tokens = plans[points[0].rank].evaluation.time_between_tokens.has_value();
  out.text((left + width - right) / 2, height - 8, tokens ? "time between tokens" : "latency",
           {.size = 12, .fill = palette::quiet, .anchor = "middle"});
  out.text(left - 8, top - 14, "energy", {.size = 12, .fill = palette::quiet, .anchor = "end"});
  std::vector<candidate_point> front;
  for (const candidate_point& c : points) {
    if (!c.dominated) front.push_back(c);
  }
  std::stable_sort(front.begin(), front.end(),
                   [](const candidate_point& a, const candidate_point& b) { return a.response_s < b.response_s; });
  std::string d;
  for (const candidate_point& c : front) d += (d.empty() ? "M" : "L") + fixed(at_x(c.response_s)) + " " + fixed(at_y(c.energy_J));
  if (front.size() > 1)
    out.path(d, "none", {}, " id=\"front\" stroke=\"" + palette::phase_color(phase::forward, 0, 1).hex() + "\" stroke-width=\"1.5\"");
  struct spot {  // one for all points at the same place
    double x, y;
    bool dominated;
    std::string label, hover;
  };
  std::vector<spot> spots;
  for (const candidate_point& c : points) {
    const double x = at_x(c.response_s), y = at_y(c.energy_J);
    auto s = std::find_if(spots.begin(), spots.end(), [&](const spot& o) { return std::hypot(o.x - x, o.y - y) <= 5; });
    if (s == spots.end()) s = spots.insert(s, {x, y, c.dominated, {}, {}});
    s->label += (s->label.empty() ? "" : ", ") + (c.rank == 0 ? std::string("best") : std::to_string(c.rank + 1));
    s->hover += (s->hover.empty() ? "" : "\n\n") + candidate_text(plans[c.rank], c, devices);
  }
  for (auto s = spots.rbegin(); s != spots.rend(); ++s) {  // the best last, on top
    const bool best = s->label.starts_with("best");
    const std::string r = best ? "7" : "5", d2 = best ? "14" : "10", arc = "a" + r + " " + r + " 0 1 0 ";
    out.path("M" + fixed(s->x - (best ? 7 : 5)) + " " + fixed(s->y) + arc + d2 + " 0" + arc + "-" + d2 + " 0Z",
             (best           ? palette::alarm
              : s->dominated ? palette::activations
                             : palette::phase_color(phase::forward, 0, 1))
                 .hex(),
             s->hover, " class=\"candidate\" stroke=\"#ffffff\" stroke-width=\"1.5\"");
  }
  std::vector<std::array<double, 4>> taken;
  for (const spot& s : spots) {  // labels without room are only hover texts
    const bool best = s.label.starts_with("best");
    const std::string label = fitted(s.label, 24);
    const double wide = svg_writer::bold_width(label, 10.5), x = s.x + 10 + wide > width - right ? s.x - 10 - wide : s.x + 10;
    const std::array box{x, s.y - 15, x + wide, s.y - 2};
    const bool overlaps = std::any_of(taken.begin(), taken.end(),
                                      [&](const auto& o) { return box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3]; });
    if (overlaps) continue;
    taken.push_back(box);
    out.text(x, s.y - 5, label, {.size = 10.5, .fill = best ? palette::alarm : palette::quiet, .weight = best ? 600 : 400});
  }
  std::string text = "<div class=\"legend\"><span>" + swatch(palette::alarm.hex(), " dot") + "best by the job's objective</span><span>" +
                     swatch(palette::phase_color(phase::forward, 0, 1).hex(), " dot") + "on the front</span><span>" +
                     swatch(palette::activations.hex(), " dot") + "dominated</span></div>\n" +
                     std::move(out).embedded(width, height, "Latency and energy of the plans that were kept", " id=\"pareto-chart\"");
  if (points.size() == 1) text += note("One plan was kept, so there is nothing to compare it with.");
  else
    text += note("The " + std::to_string(points.size()) +
                 " best plans by the job's objective, not all that exist: the true front may have others. Both axes are cut.");
  return text;
}

[[nodiscard]] HETPLAN_INLINE std::string report_header(const plan_result& result, const planning_graph& model, const cluster& c,
                                                       const evaluation* e, bool limits = false) {
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(model.name() + " on " + c.name()) + "</h1>\n<p class=\"quiet\">";
  if (!result.plans.empty()) {
    const plan& p = result.plans.front().plan;
    text += "planner " + xml_text(p.planner) + " · " + std::string(to_string(p.workload.mode)) + " · " + describe_microbatches(p) + " · ";
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
  if (e->ttft) text += fact(engineering(e->ttft->value(), "s"), "to the first token", "fact-ttft");
  if (e->time_between_tokens) text += fact(engineering(e->time_between_tokens->value(), "s"), "between tokens", "fact-tokens");
  if (e->tokens_per_second > 0) text += fact(short_number(e->tokens_per_second), "tokens per second", "fact-speed");
  if (e->prompt_tokens_per_second > 0)
    text += fact(short_number(e->prompt_tokens_per_second), "prompt tokens per second", "fact-prompt-speed");
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
  text += "</div>\n<nav><a href=\"#plan\">plan</a>" + std::string(limits ? "<a href=\"#limits\">limits</a>" : "") +
          "<a href=\"#timeline\">timeline</a><a href=\"#critical\">critical path</a><a "
          "href=\"#bandwidth\">bandwidth</a>"
          "<a href=\"#memory\">memory</a><a href=\"#energy\">energy</a><a href=\"#pareto\">latency and energy</a></nav>\n";
  return text + "</header>\n";
}

/// Returns the section of a job without a plan: the binding limit and the available memory.
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

/// Returns the regions of a plan made by deepcee, for the mean message between layers. "" if a device has no compute rate.
[[nodiscard]] HETPLAN_INLINE std::string regions_section(const plan& p, const planning_graph& model, const cluster& c) {
  const bool rated = std::ranges::all_of(c.devices(), [](const device& d) { return d.compute.value() > 0; });
  if (!p.planner.starts_with("deepcee") || c.size() < 2 || !rated || model.edges().empty()) return {};
  double total = 0;
  for (const layer_edge& e : model.edges()) total += e.forward.value();
  const groups_source from{.message = bytes(p.microbatch_size * total / static_cast<double>(model.edges().size()))};
  return groups_section(coarsen::group_devices(c, from.message, coarsen::compute_scores(c.devices()), from.thresholds), c, from);
}

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

HETPLAN_INLINE std::string report_html(const plan_result& result, const planning_graph& model, const cluster& c, const judgement& best,
                                       const report_options& options) {
  const std::string title = model.name() + " on " + c.name();
  if (result.plans.empty()) {
    std::string body = detail::report_header(result, model, c, nullptr);
    return detail::page(title, body + detail::no_plan_section(result, model, c));
  }
  const auto& [p, e] = result.plans.front();
  const detail::report_run run(result.plans.front(), c, best, options.max_bars);
  std::string body = detail::report_header(result, model, c, &e, options.explained.has_value());
  body +=
      "<svg width=\"0\" height=\"0\" style=\"position:absolute;min-width:0\" aria-hidden=\"true\">" + detail::sync_pattern() + "</svg>\n";
  body += detail::section("plan", "Plan", "Which layers run where.", detail::plan_table(run, model));
  if (options.explained)
    body += detail::section("limits", "What limits the devices",
                            "Where the time of each device went, in shares of a stretch of the run, and what its memory is for.",
                            detail::scrolling(detail::limits_charts(*options.explained, c, e)));
  body += detail::regions_section(p, model, c);
  std::string incomplete;
  if (!best.trace.status.ok()) incomplete = "<p class=\"alarm\">Incomplete: " + xml_text(best.trace.status.reason) + ".</p>\n";
  body += detail::section(
      "timeline", "Timeline",
      "Who computes what when, and how the network is shared meanwhile. Thin strips below a device are what it sends; "
      "heights in a network row are shares of its capacity.",
      incomplete +
          detail::zoom_tools("run", "<button id=\"mark-critical\" type=\"button\" aria-pressed=\"false\">Mark critical path</button>",
                             " All charts over time move together.") +
          detail::scrolling(detail::timeline_chart(run)));
  body += detail::section(
      "critical", "Critical path",
      "From the last end back to the start, always to what was waited for last. Every moment of the run belongs to one link.",
      detail::critical_section(run));
  const std::string bandwidth = detail::bandwidth_chart(run);
  body +=
      detail::section("bandwidth", "Bandwidth", "Use of each network resource, stacked by kind of transfer; dashed: its capacity.",
                      bandwidth.empty() ? detail::note("No transfer uses a network resource in this run.") : detail::scrolling(bandwidth));
  body += detail::section(
      "memory", "Memory",
      "Light: held for the whole run (weights, gradients, optimizer, cache). Dark: activations. Dashed: what a plan may use.",
      detail::scrolling(detail::memory_chart(run)));
  body += detail::section("energy", "Energy", "Of one run, by device that is used.", detail::scrolling(detail::energy_chart(run)));
  body += detail::section("pareto", "Latency and energy",
                          "The plans that were kept, numbered from the best by the job's objective. Hover over a point to see its stages.",
                          detail::scrolling(detail::pareto_chart(result.plans, c)));
  return detail::page(title, body);
}

}  // namespace hetplan::draw
