// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_timeline.hpp>

#include <algorithm>

#include <range/v3/view/zip.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE report_run::report_run(const ranked_plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars)
    : plan(p.plan), evaluation(p.evaluation), cluster(c), judgement(j), view(p.plan, c, j), resources(view.resources()),
      chain(critical_chain(j.graph, j.trace, c.network())), wait_states_(j.graph, j.trace), critical_(j.graph.size(), 0),
      of_resource_(c.network().resources().size(), none) {
  std::size_t bars = j.graph.computes.size() + j.graph.transfers.size();
  for (const resource_view& r : resources) bars += r.pieces / 4;  // several pieces share an outline
  merged = bars > max_bars;
  if (!merged) resources = view.resources(sweep_detail::bands);
  for (const critical_link& l : chain) critical_[l.node] = 1;
  for (std::size_t i = 0; i < resources.size(); ++i) of_resource_[resources[i].resource.index()] = i;
  for (const tasks::transfer& t : j.graph.transfers) prioritised_ = prioritised_ || t.priority != 0;
}

HETPLAN_INLINE double report_run::lost_s(std::size_t t) const {
  const double drain_s = judgement.trace.transfers[t].end_s - view.drain_start_s(t);
  return std::max(0.0, drain_s * (1 - view.route_share(t)));
}

HETPLAN_INLINE std::pair<std::uint32_t, std::string> report_run::most_others(std::size_t t) const {
  const double from = view.drain_start_s(t), to = judgement.trace.transfers[t].end_s, instant = 1e-9 * latency_s();
  std::pair<std::uint32_t, std::string> most{0, {}};
  for (const resource_use& u : judgement.graph.routes[judgement.graph.transfers[t].route].via) {
    if (of_resource_[u.resource.index()] == none) continue;
    const auto& loads = resources[of_resource_[u.resource.index()]].loads;
    auto l = std::upper_bound(loads.begin(), loads.end(), from + instant, [](double at, const resource_load& x) { return at < x.end_s; });
    for (; l != loads.end() && l->start_s < to - instant; ++l) {
      if (l->active > most.first + 1) most = {l->active - 1, cluster.network()[u.resource].name};
    }
  }
  return most;
}

HETPLAN_INLINE std::string report_run::why(tasks::node_id n) const {
  const wait w = wait_states_.of(n);
  switch (w.why) {
    case wait_reason::start_of_run: return {};
    case wait_reason::input: return "after " + view.node_name(w.because);
    case wait_reason::device: return "its device was busy with " + view.compute_name(w.because);
    case wait_reason::release: return "released by the schedule at " + engineering(judgement.graph.transfer_at(n).release_s, "s");
    case wait_reason::ports: return "its port was held by " + view.node_name(w.because);
    case wait_reason::links: return "its route was held by " + view.node_name(w.because);
  }
  return {};
}

HETPLAN_INLINE std::string report_run::hover_lines(tasks::node_id n) const {
  std::string text;
  const auto& g = judgement.graph;
  if (g.is_transfer(n)) {
    const tasks::transfer& x = g.transfer_at(n);
    const std::size_t t = n - g.computes.size();
    std::string route;
    for (const resource_use& u : g.routes[x.route].via) {
      const resource& r = cluster.network()[u.resource];
      route += (route.empty() ? "route: " : ", ") + r.name + " (" + engineering(8 * r.capacity.value(), "bit/s") +
               (u.weight != 1 ? " × " + fixed(u.weight, 3) : "") + ")";
    }
    text += "\n" + (route.empty() ? "route: without limit" : route);
    if (prioritised_) text += "\npriority " + std::to_string(x.priority);
    if (const wait w = wait_states_.of(n); w.why == wait_reason::ports || w.why == wait_reason::links || w.why == wait_reason::release)
      text += "\n" + why(n);
    const double lost = lost_s(t);
    if (const auto [others, where] = most_others(t); others > 0 && lost > 1e-6 * latency_s()) {
      text += "\n" + engineering(lost, "s") + " lost: shared with " +
              (others == 1 ? "1 other" : "up to " + std::to_string(others) + " others") + " on " + where;
    }
  }
  if (critical(n)) text += "\non the critical path: " + (why(n).empty() ? "from the start" : why(n));
  return text;
}

HETPLAN_INLINE critical_part_style style_of(critical_part p) {
  switch (p) {
    case critical_part::computing: return {"computing", "tasks on the devices", color{92, 107, 128}};
    case critical_part::transfer: return {"transferring", "bytes at the peak rate of their route", color{98, 172, 196}};
    case critical_part::latency: return {"latency", "of routes: until the first byte moves", palette::held};
    case critical_part::lost: return {"lost to sharing", "transfers got less than their route's peak rate", palette::alarm};
    case critical_part::held: return {"held back", "until a release time of the schedule", color{226, 196, 84}};
  }
  return {};
}

HETPLAN_INLINE std::array<double, critical_part_count> parts_of(const critical_link& l, bool compute) {
  // Tasks lose time only to a slower device, during which they compute.
  return compute ? std::array{l.own_s + l.lost_s, 0.0, 0.0, 0.0, l.held_s} : std::array{0.0, l.own_s, l.latency_s, l.lost_s, l.held_s};
}

class timeline_painter {
 public:
  explicit timeline_painter(const report_run& run)
      : run_(run), chart_(run.latency_s()), resources_(run.resources),
        bars_{.attributes = [&run](tasks::node_id n) { return std::string(run.critical(n) ? " class=\"c\"" : ""); },
              .lines = [&run](tasks::node_id n) { return run.hover_lines(n); }} {
    hidden_ = keep_busiest(resources_, run.cluster, run.judgement.trace, 16);
    for (const device& d : run.cluster.devices()) devices_ += run.used(d.id) ? 1U : 0U;
  }

  [[nodiscard]] std::string paint() && {
    row_painter rows(chart_.plot, run_.plan, run_.cluster, run_.judgement, run_.view, chart_.axis(), run_.merged, &bars_);
    double y = 16;
    chart_.name("critical path", "what the run waits for", y, 26);
    critical_path({y, 26});
    y += 26 + 14;
    chart_.plot.open_group(" class=\"bars\"");
    for (const device& d : run_.cluster.devices()) {
      if (!run_.used(d.id)) continue;
      const double height = devices_ <= 8 ? 28 : devices_ <= 16 ? 20 : 14;
      chart_.name(d.name, run_.view.stages_of(d.id), y, height);
      rows.tasks(d.id, {y, height});
      const double busy = run_.judgement.trace.busy_s[d.id.index()] / chart_.axis().latency_s;
      chart_.number(fixed(100 * busy, 0) + " % busy", y + height / 2 + 4);
      y += height + (run_.merged ? 0 : sends(d.id, y + height + 2)) + (devices_ <= 16 ? 10 : 5);
    }
    const double band = resources_.size() <= 2 ? 72 : resources_.size() <= 6 ? 44 : 26;
    for (const resource_view& r : resources_) {
      y += 14;
      resource_row(rows, r, {y, band});
      y += band + 8;
    }
    chart_.plot.close_group();
    const double bound = std::max(run_.evaluation.bound, run_.evaluation.placement_bound).value();
    if (bound > 0 && bound < 0.999 * run_.latency_s()) {
      const double x = chart_.axis().at(bound);
      chart_.plot.line(x, 12, x, y, palette::ink, 1, " stroke-dasharray=\"2 3\"");
      chart_.plot.text(x, 10, "bound", {.size = 9.5, .anchor = "middle"});
    }
    merged_ = rows.merged();
    return "<div class=\"legend\">" + legend() + "</div>\n" +
           std::move(chart_).finish("gantt", "Gantt chart of tasks and transfers", 12, y) + notes();
  }

 private:
  /// Paints the critical path as a row. Each moment belongs to a task, or to a transfer with its latency and its loss by sharing.
  void critical_path(row_box box) {
    const time_axis& axis = chart_.axis();
    chart_.plot.open_group(" id=\"critical-strip\"");
    if (run_.chain.size() > 1500) {
      pixel_areas<critical_part_count> areas(axis, box);
      std::array<std::string, critical_part_count> fills, hovers;
      for (std::size_t p = 0; p < critical_part_count; ++p) {
        fills[p] = style_of(static_cast<critical_part>(p)).fill.hex(), hovers[p] = style_of(static_cast<critical_part>(p)).name;
      }
      for (const critical_link& l : run_.chain) {
        const auto parts = parts_of(l, run_.judgement.graph.is_compute(l.node));
        for (std::size_t p = 0; p < critical_part_count; ++p) areas.add(p, l.start_s, l.end_s, parts[p] / std::max(l.duration_s(), 1e-300));
      }
      areas.paint(chart_.plot, fills, hovers);
    } else {
      for (const critical_link& l : run_.chain) link(l, box);
    }
    chart_.plot.close_group();
  }

  void link(const critical_link& l, row_box box) {
    const auto& g = run_.judgement.graph;
    const bool compute = g.is_compute(l.node);
    const std::string reason = run_.why(l.node);
    std::string hover = run_.view.node_name(l.node) + "\n" + engineering(l.start_s, "s") + " to " + engineering(l.end_s, "s") + ", takes " +
                        engineering(l.duration_s(), "s");
    if (l.latency_s > 0) hover += ", " + engineering(l.latency_s, "s") + " of it latency";
    if (l.lost_s > 0)
      hover += compute ? "\n" + engineering(l.lost_s, "s") + " lost to a slower device"
                       : "\n" + engineering(l.lost_s, "s") + " lost to others on its route";
    hover += "\n" + (reason.empty() ? "from the start of the run" : reason);
    double from = l.start_s;
    const auto piece = [&](double seconds, double low, double high, color fill) {
      const double x = chart_.axis().at(from), width = chart_.axis().at(from + seconds) - x;
      if (seconds <= 0 || width < 0.005) return;
      chart_.plot.rect(x, box.top + box.height * (1 - high), width, box.height * (high - low), fill.hex(), hover,
                       " stroke=\"#ffffff\" stroke-width=\"0.5\"");
    };
    piece(l.held_s, 0, 1, style_of(critical_part::held).fill);
    from += l.held_s;
    piece(l.latency_s, 0, 1, style_of(critical_part::latency).fill);
    from += l.latency_s;
    // Losses are spread over the transfer: they are drawn above its share, not after it.
    const double rest = l.own_s + l.lost_s, share = rest > 0 ? l.own_s / rest : 1;
    const color own = compute ? style_of(critical_part::computing).fill : style_of(critical_part::transfer).fill;
    piece(rest, 0, compute ? 1 : share, own);
    if (!compute && share < 1) piece(rest, share, 1, style_of(critical_part::lost).fill);
    const double x = chart_.axis().at(from), width = chart_.axis().at(l.end_s) - x;
    const std::string label = compute ? run_.view.device_name(g.computes[l.node].device) : std::string();
    const double show_at = std::max(1.0, (svg_writer::prose_width(label, 10.5) + 6) / std::max(width, 1e-9));
    if (label.empty() || show_at > largest_zoom) return;
    chart_.plot.text(x + width / 2, box.top + box.height / 2 + 4, label, {.size = 10.5, .fill = palette::text_on(own), .anchor = "middle"},
                     svg_writer::attribute("data-show", show_at) + (show_at > 1 ? " visibility=\"hidden\"" : ""));
  }

  /// Paints the transfers that leave a device, latency included, in lanes. Returns their height.
  double sends(device_id d, double top) {
    constexpr double lane_height = 5;
    constexpr std::size_t most_lanes = 6;
    const auto& j = run_.judgement;
    std::vector<std::size_t> mine;
    for (std::size_t t = 0; t < j.graph.transfers.size(); ++t) {
      if (j.graph.transfers[t].from == d && run_.view.transfer_ended(t)) mine.push_back(t);
    }
    std::stable_sort(mine.begin(), mine.end(),
                     [&](std::size_t a, std::size_t b) { return j.trace.transfers[a].start_s < j.trace.transfers[b].start_s; });
    std::vector<double> free;
    for (const std::size_t t : mine) {
      const interval& when = j.trace.transfers[t];
      std::size_t lane = 0;
      while (lane < free.size() && free[lane] > when.start_s * (1 + 1e-12)) ++lane;
      if (lane == free.size() && lane < most_lanes) free.push_back(0);
      lane = std::min(lane, most_lanes - 1);
      free[lane] = std::max(free[lane], when.end_s);
      const tasks::transfer& x = j.graph.transfers[t];
      const double left = chart_.axis().at(when.start_s), y = top + lane_height * static_cast<double>(lane);
      std::string hover = "sends: " + run_.view.transfer_name(t) + "\n" + engineering(x.volume_bytes, "B") + ", " +
                          engineering(when.start_s, "s") + " to " + engineering(when.end_s, "s") + ", takes " +
                          engineering(when.end_s - when.start_s, "s");
      if (x.latency_s > 0) hover += ", " + engineering(x.latency_s, "s") + " of it latency";
      chart_.plot.rect(left, y, std::max(0.01, chart_.axis().at(when.end_s) - left), lane_height - 1, transfer_fill(x.kind),
                       hover + run_.hover_lines(j.graph.node_of_transfer(t)), bars_.attributes(j.graph.node_of_transfer(t)));
    }
    return free.empty() ? 0 : 2 + lane_height * static_cast<double>(free.size());
  }

  void resource_row(row_painter& rows, const resource_view& r, row_box box) {
    const resource& net = run_.cluster.network()[r.resource];
    chart_.name(net.name, engineering(8 * net.capacity.value(), "bit/s"), box.top, box.height);
    rows.resource(r, box);
    const double used = run_.judgement.trace.resource_bytes[r.resource.index()] / (net.capacity.value() * chart_.axis().latency_s);
    const double contended = r.contended_s() / chart_.axis().latency_s, middle = box.top + box.height / 2;
    contended_ = contended_ || contended > 0;
    const bool both = contended > 0 && box.height >= 24;
    chart_.number(fixed(100 * used, 0) + " % used", both ? middle - 3 : middle + 4);
    if (both) chart_.number((contended < 0.01 ? "<1" : fixed(100 * contended, 0)) + " % contended", middle + 12, palette::alarm);
  }

  [[nodiscard]] std::string legend() const {
    std::array<bool, phase_count> phases{};
    std::array<bool, transfer_kind_count> kinds{};
    for (const auto& t : run_.judgement.graph.computes) phases[static_cast<std::size_t>(t.what)] = true;
    for (const auto& t : run_.judgement.graph.transfers) kinds[static_cast<std::size_t>(t.kind)] = true;
    const std::size_t stages = std::min<std::size_t>(run_.plan.stages.size(), 3);
    std::string text;
    const std::array<std::string, phase_count> called = phase_names(run_.judgement.graph);
    for (std::size_t i = 0; i < phase_count; ++i) {
      if (!phases[i]) continue;
      text += "<span>";
      for (std::size_t s = 0; s < stages; ++s) text += swatch(palette::phase_color(static_cast<phase>(i), s, stages).hex());
      text += called[i] + "</span>";
    }
    if (stages > 1) text += "<span>(lighter: later stage)</span>";
    for (std::size_t i = 0; i < transfer_kind_count; ++i) {
      const auto kind = static_cast<transfer_kind>(i);
      if (kinds[i])
        text += "<span>" + swatch(palette::transfer_color(kind).hex(), kind == transfer_kind::sync ? " hatched" : "") +
                std::string(transfer_kind_names[i]) + "</span>";
    }
    if (contended_) text += "<span>" + swatch(palette::alarm.hex(), " line") + "contention: how many transfers share</span>";
    std::array<double, critical_part_count> total{};
    for (const critical_link& l : run_.chain) {
      const auto parts = parts_of(l, run_.judgement.graph.is_compute(l.node));
      for (auto&& [sum, part] : ranges::views::zip(total, parts)) sum += part;
    }
    text += "</div>\n<div class=\"legend\"><span>critical path:</span>";
    for (std::size_t p = 0; p < critical_part_count; ++p) {
      const critical_part_style style = style_of(static_cast<critical_part>(p));
      if (total[p] > 0) text += "<span>" + swatch(style.fill.hex()) + std::string(style.name) + "</span>";
    }
    return text;
  }

  [[nodiscard]] std::string notes() const {
    std::string text;
    if (run_.merged)
      text += "<p class=\"note\">Simplified: " + std::to_string(merged_) +
              " short tasks and all transfers are averaged over each pixel; heights are shares of time and of capacity, also when "
              "zoomed.</p>\n";
    if (run_.chain.size() > 1500)
      text += note("Simplified: the critical path has " + std::to_string(run_.chain.size()) + " links, averaged over each pixel.");
    if (hidden_ > 0)
      text += note("The " + std::to_string(resources_.size()) + " busiest resources are shown, " + std::to_string(hidden_) +
                   " quieter ones are not.");
    if (!resources_.empty() && !resources_.front().recorded)
      text += note("Rates were not recorded: bands show which transfers are under way, not how much they get.");
    if (resources_.empty()) text += note("No transfer uses a network resource in this run.");
    return text;
  }

  const report_run& run_;
  time_chart chart_;
  std::vector<resource_view> resources_;
  zooming_bars bars_;
  std::size_t devices_ = 0, hidden_ = 0, merged_ = 0;
  bool contended_ = false;
};

HETPLAN_INLINE std::string timeline_chart(const report_run& run) { return timeline_painter(run).paint(); }

/// Returns the outline of one kind of transfer over a resource, stacked on the kinds before it, with every step of the run.
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
  if (averaged) notes += note("Simplified: rates that change more often than a pixel are averaged.");
  if (!views.front().recorded) notes += note("Rates were not recorded: heights only count transfers.");
  if (hidden > 0)
    notes +=
        note("The " + std::to_string(views.size()) + " busiest resources are shown, " + std::to_string(hidden) + " quieter ones are not.");
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
  if (devices == 0) return note("No device is used.");
  return std::move(chart).finish("memory-chart", "Memory over time", 6, y) +
         (run.judgement.trace.memory.empty() ? note("Memory was not recorded, or nothing but state is held.") : "");
}

}  // namespace hetplan::draw::detail
