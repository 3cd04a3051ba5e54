// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_candidates.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/slice.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/cost/energy_model.hpp>
#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/ticks.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE std::string cell(std::string_view text, std::string_view more) {
  return "<td" + std::string(more) + ">" + xml_text(text) + "</td>";
}

HETPLAN_INLINE std::string meter(double share, bool alarm, std::string_view text) {
  return "<td><span class=\"meter" + std::string(alarm ? " over" : "") +
         "\"><i style=\"width:" + fixed(100 * std::clamp(share, 0.0, 1.0), 1) + "%\"></i></span>" + xml_text(text) + "</td>";
}

/// A device's memory and busy share.
[[nodiscard]] HETPLAN_INLINE std::string meters(const report_run& run, const device& d) {
  const double peak = run.judgement.trace.peak_bytes[d.id.index()], usable = d.usable_memory().value();
  const double busy = run.latency_s() > 0 ? run.judgement.trace.busy_s[d.id.index()] / run.latency_s() : 0;
  return meter(peak / usable, peak > memory_limit_bytes(d), engineering(peak, "B") + " of " + engineering(usable, "B")) +
         meter(busy, false, fixed(100 * busy, 0) + " %") + "</tr>\n";
}

/// Where every operator is a stage: a row for each device.
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

HETPLAN_INLINE std::string plan_table(const report_run& run, const planning_graph& model) {
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
        if (here.recompute) name += ", recomputes";
        if (here.state_shards() > 1) name += ", optimizer state in " + std::to_string(here.state_shards()) + " parts";
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

/// Links of the chain that one row of the table tells of.
struct chain_row {
  std::size_t first = 0, count = 1;
};

/// Tasks that follow one another on a device are one row.
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

HETPLAN_INLINE std::string critical_section(const report_run& run) {
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
    legend += "<tr><td><i class=\"swatch\" style=\"background-color:" + style.fill.hex() + "\"></i>" + std::string(style.name) +
              "</td><td class=\"n\">" + (share > 0 && share < 0.05 ? "&lt;0.1" : fixed(share, 1)) + " %</td><td class=\"n\">" +
              engineering(total[p], "s") + "</td><td class=\"quiet\">" + std::string(style.about) + "</td></tr>\n";
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
    text += "<p class=\"note\">Simplified: " + std::to_string(rows.size() - most_rows) +
            " later rows are left out of the table, not of the totals.</p>\n";
  return text;
}

HETPLAN_INLINE std::string energy_chart(const report_run& run, const evaluation& e) {
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
    const std::array<double, 3> parts{d.power.idle.value() * run.latency_s(), (d.power.active - d.power.idle).value() * t.busy_s[i],
                                      d.power.send.value() * t.sent_bytes[i] + d.power.receive.value() * t.received_bytes[i]};
    const double total = e.devices[i].energy.value();
    split = split && std::abs(parts[0] + parts[1] + parts[2] - total) <= 1e-9 * total;
    rows.emplace_back(&d, parts);
    most = std::max(most, total);
  }
  if (rows.empty() || most <= 0) return "<p class=\"note\">No energy is charged: the devices have no power profile.</p>\n";
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
  for (std::size_t k = 0; split && k < 3; ++k)
    legend += "<span><i class=\"swatch\" style=\"background-color:" + fills[k].hex() + "\"></i>" + std::string(names[k]) + "</span>";
  if (!split) legend += "<span>The energy model of this run has no parts of its own: totals only.</span>";
  return legend + "</div>\n" + std::move(out).embedded(width, height + 26, "Energy by device", " id=\"energy-chart\"");
}

HETPLAN_INLINE std::vector<candidate_point> candidate_points(const std::vector<plan>& plans) {
  std::vector<candidate_point> all;
  for (const auto& [i, p] : ranges::views::enumerate(plans)) {
    if (p.predicted) all.push_back({i, p.predicted->response().value(), p.predicted->energy().value()});
  }
  for (candidate_point& a : all) {
    a.dominated = std::any_of(all.begin(), all.end(), [&](const candidate_point& b) {
      return b.response_s <= a.response_s && b.energy_J <= a.energy_J && (b.response_s < a.response_s || b.energy_J < a.energy_J);
    });
  }
  return all;
}

[[nodiscard]] HETPLAN_INLINE std::string candidate_text(const plan& p, const candidate_point& c, const cluster& devices) {
  std::string text = (c.rank == 0 ? "best plan" : "plan " + std::to_string(c.rank + 1)) + ": " + engineering(c.response_s, "s") +
                     (p.predicted->time_between_tokens ? " per token, " : ", ") + engineering(c.energy_J, "J");
  for (const stage& s : p.stages) {
    text += "\n" + std::to_string(s.layers.size()) + (s.layers.size() == 1 ? " layer on " : " layers on ");
    text += io::joined(s.devices | ranges::views::transform([&](const assignment& a) { return devices[a.device].name; }));
  }
  return text + "\n" + std::to_string(p.microbatches) + (p.microbatches == 1 ? " microbatch of " : " microbatches of ") +
         std::to_string(p.microbatch_size) +
         (c.dominated ? "\nanother plan is no worse in both" : "\non the front: no other plan is better in both");
}

HETPLAN_INLINE std::string pareto_chart(const std::vector<plan>& plans, const cluster& devices) {
  constexpr double width = 1180, height = 360, left = 80, right = 24, top = 30, bottom = 52;
  std::vector<candidate_point> points = candidate_points(plans);
  if (points.empty()) return "<p class=\"note\">No plan has a prediction.</p>\n";
  double x0 = points[0].response_s, x1 = x0, y0 = points[0].energy_J, y1 = y0;
  for (const candidate_point& c : points)
    x0 = std::min(x0, c.response_s), x1 = std::max(x1, c.response_s), y0 = std::min(y0, c.energy_J), y1 = std::max(y1, c.energy_J);
  const auto widen = [](double& low, double& high) {
    const bool apart = high - low > 1e-9 * std::abs(high);  // else a tick would be less than what separates two numbers
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
  const bool tokens = plans[points[0].rank].predicted->time_between_tokens.has_value();
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
  struct spot {  // points on one place are one that names them all
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
  for (const spot& s : spots) {  // a label that has no room is left to the hover
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
  std::string text = "<div class=\"legend\"><span><i class=\"swatch dot\" style=\"background-color:" + palette::alarm.hex() +
                     "\"></i>best by the job's objective</span><span><i class=\"swatch dot\" style=\"background-color:" +
                     palette::phase_color(phase::forward, 0, 1).hex() +
                     "\"></i>on the front</span><span><i class=\"swatch dot\" style=\"background-color:" + palette::activations.hex() +
                     "\"></i>dominated</span></div>\n" +
                     std::move(out).embedded(width, height, "Latency and energy of the plans that were kept", " id=\"pareto-chart\"");
  if (points.size() == 1) text += "<p class=\"note\">One plan was kept, so there is nothing to compare it with.</p>\n";
  else
    text += "<p class=\"note\">The " + std::to_string(points.size()) +
            " best plans by the job's objective, not all that exist: the true front may have others. Both axes are cut.</p>\n";
  return text;
}

}  // namespace hetplan::draw::detail
