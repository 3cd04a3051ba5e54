// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_tables.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/slice.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/plan/limits.hpp>

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

}  // namespace hetplan::draw::detail
