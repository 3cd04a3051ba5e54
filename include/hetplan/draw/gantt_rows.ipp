// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/gantt_rows.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE std::string transfer_fill(transfer_kind k, std::size_t stage, std::size_t stages) {
  return k == transfer_kind::sync ? "url(#hetplan-sync)" : palette::transfer_color(k, stage, stages).hex();
}

HETPLAN_INLINE std::array<std::string, phase_count> phase_names(const tasks::task_graph& g) {
  const auto any = [&](auto&& holds) { return std::any_of(g.computes.begin(), g.computes.end(), holds); };
  const bool split = any([](const tasks::compute_task& t) { return t.what == phase::backward_weight; });
  const bool again = any([](const tasks::compute_task& t) { return t.again_s > 0; });
  const std::string backward = split ? "input gradient" : "backward";
  return {"forward", backward + (again ? " (strip: forward again)" : ""), "weight gradient", "optimizer"};
}

HETPLAN_INLINE std::size_t keep_busiest(std::vector<resource_view>& views, const cluster& c, const trace& t, std::size_t most) {
  if (views.size() <= most) return 0;
  const std::size_t hidden = views.size() - most;
  const auto load = [&](const resource_view& r) { return t.resource_bytes[r.resource.index()] / c.network()[r.resource].capacity.value(); };
  std::stable_sort(views.begin(), views.end(), [&](const auto& a, const auto& b) { return load(a) > load(b); });
  views.resize(most);
  std::sort(views.begin(), views.end(), [](const auto& a, const auto& b) { return a.resource < b.resource; });
  return hidden;
}

HETPLAN_INLINE row_painter::row_painter(svg_writer& out, const plan& p, const cluster& c, const judgement& j, const trace_view& view,
                                        time_axis axis, bool merge, const zooming_bars* zooming)
    : out_(out), plan_(p), cluster_(c), graph_(j.graph), trace_(j.trace), view_(view), axis_(axis), merge_(merge), zooming_(zooming) {}

HETPLAN_INLINE void row_painter::tasks(device_id d, row_box box) {
  out_.rect(axis_.left, box.top, axis_.width, box.height, palette::track.hex());
  if (merge_) density(d, box);
  for (const tasks::node_id n : graph_.device_order[d.index()]) {
    if (view_.ended(n) && !too_fine(n)) task(n, box);
  }
}

HETPLAN_INLINE void row_painter::memory(device_id d, row_box box) {
  const double usable = cluster_[d].usable_memory().value(), peak = trace_.peak_bytes[d.index()];
  const double full = std::max(usable, peak), state = graph_.static_bytes[d.index()];
  out_.rect(axis_.left, box.top, axis_.width, box.height, palette::track.hex());
  std::vector<std::pair<double, double>> levels{{0, state}};
  double pixel_end = 0;
  for (const memory_change& m : trace_.memory) {
    if (m.device != d.index()) continue;
    const double x = axis_.at(m.at_s);
    if (merge_ && x < pixel_end) {
      levels.back().second = std::max(levels.back().second, m.held_bytes);
    } else if (levels.back().first == m.at_s) {
      levels.back().second = m.held_bytes;
    } else {
      levels.emplace_back(m.at_s, m.held_bytes);
      pixel_end = x + 1;
    }
  }
  std::string hover = view_.device_name(d) + ": memory at most " + engineering(peak, "B") + " of " + engineering(usable, "B") +
                      (usable < cluster_[d].memory.value() ? " that a plan may use" : "") + "\n" + engineering(state, "B") +
                      " all the time";
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    const hetplan::stage& here = plan_.stages[s];
    const bool mine = std::any_of(here.devices.begin(), here.devices.end(), [&](const assignment& a) { return a.device == d; });
    if (mine && here.recompute) hover += "\n" + view_.stage_name(stage_id(s)) + " recomputes its activations";
    if (mine && here.state_shards() > 1) {
      hover += "\n" + view_.stage_name(stage_id(s)) + ": one of " + std::to_string(here.state_shards()) + " parts of the optimizer's state";
    }
  }
  std::string outline = "M" + fixed(axis_.left) + " " + fixed(box.level(state / full));
  for (const auto& [at, held] : levels) outline += "H" + fixed(axis_.at(at)) + "V" + fixed(box.level(held / full));
  outline += "H" + fixed(axis_.left + axis_.width) + "V" + fixed(box.level(state / full)) + "Z";
  if (state > 0) {
    out_.rect(axis_.left, box.level(state / full), axis_.width, box.top + box.height - box.level(state / full), palette::held.hex(), hover);
  }
  if (levels.size() > 1) out_.path(outline, palette::activations.hex(), hover);
  if (peak > usable)
    out_.line(axis_.left, box.level(usable / full), axis_.left + axis_.width, box.level(usable / full), palette::alarm, 1.5);
}

HETPLAN_INLINE void row_painter::resource(const resource_view& r, row_box box) {
  out_.rect(axis_.left, box.top, axis_.width, box.height, palette::track.hex());
  const double full = r.peak > 1 + 1e-6 ? r.peak : 1;  // a capacity that was raised during the run
  if (merge_) {
    pixel_areas<transfer_kind_count> areas(axis_, box);
    std::array<std::string, transfer_kind_count> fills, hovers;
    for (std::size_t k = 0; k < transfer_kind_count; ++k) {
      fills[k] = transfer_fill(static_cast<transfer_kind>(k));
      hovers[k] = std::string(to_string(static_cast<transfer_kind>(k))) + " transfers over " + cluster_.network()[r.resource].name;
    }
    for (const resource_load& l : r.loads) {
      for (std::size_t k = 0; k < transfer_kind_count; ++k) areas.add(k, l.start_s, l.end_s, l.kinds[k] / full);
    }
    areas.paint(out_, fills, hovers);
  } else {
    for (std::size_t begin = 0; begin < r.bands.size();) {
      std::size_t end = begin;
      while (end < r.bands.size() && r.bands[end].transfer == r.bands[begin].transfer) ++end;
      transfer(r, begin, end, box, full);
      begin = end;
    }
  }
  out_.line(axis_.left, box.top, axis_.left + axis_.width, box.top, palette::frame);
  contention(r, box);
}

HETPLAN_INLINE double row_painter::width_of(tasks::node_id n) const {
  return axis_.at(trace_.computes[n].end_s) - axis_.at(trace_.computes[n].start_s);
}

HETPLAN_INLINE color row_painter::fill_of(tasks::node_id n) const {
  const hetplan::tasks::compute_task& t = graph_.computes[n];
  return palette::phase_color(t.what, t.stage.valid() ? t.stage.index() : 0, plan_.stages.size());
}

HETPLAN_INLINE std::string row_painter::during(double start_s, double end_s) {
  return engineering(start_s, "s") + " to " + engineering(end_s, "s") + ", takes " + engineering(end_s - start_s, "s");
}

HETPLAN_INLINE void row_painter::task(tasks::node_id n, row_box box) {
  const interval& when = trace_.computes[n];
  std::string hover = view_.compute_name(n) + "\n" + during(when.start_s, when.end_s);
  if (const std::string reason = view_.waited_for(n); !reason.empty()) {
    hover += "\nafter " + engineering(view_.idle_before_s(n), "s") + " of waiting for " + reason;
  }
  const color fill = fill_of(n);
  const std::string label = view_.bar_label(n);
  if (zooming_) {
    zooming_bar(n, box, fill, hover + zooming_->lines(n));
    run_again(n, box);
    const double size = std::min(11.0, 0.7 * box.height);
    zooming_label((axis_.at(when.start_s) + axis_.at(when.end_s)) / 2, box.top + box.height / 2, label,
                  {.size = size, .fill = palette::text_on(fill), .anchor = "middle"}, width_of(n) - 1);
    return;
  }
  bar(axis_.at(when.start_s), width_of(n), box, fill, hover);
  run_again(n, box);
  for (const double size : {11.0, 9.5, 8.0}) {
    if (size > 0.7 * box.height || svg_writer::text_width(label, size) + 2 > width_of(n)) continue;
    out_.text((axis_.at(when.start_s) + axis_.at(when.end_s)) / 2, box.top + box.height / 2 + 0.36 * size, label,
              {.size = size, .fill = palette::text_on(fill), .anchor = "middle"});
    break;
  }
}

HETPLAN_INLINE void row_painter::run_again(tasks::node_id n, row_box box) {
  const hetplan::tasks::compute_task& t = graph_.computes[n];
  if (t.again_s <= 0) return;
  out_.rect(axis_.at(trace_.computes[n].start_s), box.top + 0.75 * box.height, t.again_s / t.duration_s * width_of(n), 0.25 * box.height,
            palette::phase_color(phase::forward, t.stage.index(), plan_.stages.size()).hex(), {}, " pointer-events=\"none\"");
}

HETPLAN_INLINE void row_painter::bar(double x, double width, row_box box, color fill, std::string_view hover) {
  const double seam = width > 2.5 ? 0.35 : 0;
  out_.rect(x + seam, box.top, std::max(0.5, width - 2 * seam), box.height, fill.hex(), hover, width > 8 ? " rx=\"1.5\"" : "");
}

HETPLAN_INLINE void row_painter::zooming_bar(tasks::node_id n, row_box box, color fill, std::string_view hover) {
  const double x = axis_.at(trace_.computes[n].start_s), width = width_of(n);
  const std::string more = zooming_->attributes(n) + " stroke=\"" + (width > 2.5 ? palette::paper : fill).hex() + "\" stroke-width=\"0.7\"";
  if (width >= 0.01) {
    out_.rect(x, box.top, width, box.height, fill.hex(), hover, more);
  } else {  // takes no time, and is seen all the same
    out_.path("M" + fixed(x) + " " + fixed(box.top) + "v" + fixed(box.height), fill.hex(), hover, more);
  }
}

HETPLAN_INLINE double row_painter::zooming_label(double x, double middle, const std::string& text, const text_style& style, double room,
                                                 double hide_at) {
  const double show_at = room > 0 ? std::max(1.0, (svg_writer::text_width(text, style.size) + 3) / room) : zooming_bars::most + 1;
  if (show_at > zooming_bars::most) return show_at;
  std::string more = svg_writer::attribute("data-show", show_at);
  if (hide_at > 0) more += svg_writer::attribute("data-hide", hide_at);
  if (show_at > 1) more += " visibility=\"hidden\"";
  out_.text(x, middle + 0.36 * style.size, text, style, more);
  return show_at;
}

HETPLAN_INLINE void row_painter::density(device_id d, row_box box) {
  pixel_areas<phase_count> areas(axis_, box);
  std::array<std::string, phase_count> fills, hovers;
  std::array<std::size_t, phase_count> count{};
  for (const tasks::node_id n : graph_.device_order[d.index()]) {
    if (!view_.ended(n) || !too_fine(n)) continue;
    const auto p = static_cast<std::size_t>(graph_.computes[n].what);
    areas.add(p, trace_.computes[n].start_s, trace_.computes[n].end_s, 1);
    if (count[p]++ == 0) fills[p] = fill_of(n).hex();
    ++merged_;
  }
  for (std::size_t p = 0; p < phase_count; ++p)
    hovers[p] = std::to_string(count[p]) + " short tasks on " + view_.device_name(d) + ": " + std::string(to_string(static_cast<phase>(p)));
  areas.paint(out_, fills, hovers);
}

HETPLAN_INLINE void row_painter::transfer(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full) {
  const std::uint32_t t = r.bands[begin].transfer;
  std::string d;
  const auto starved = [&](std::size_t i) { return r.bands[i].high <= r.bands[i].low; };  // waits for more urgent ones
  for (std::size_t i = begin; i < end;) {
    std::size_t last = i;
    while (last + 1 < end && !starved(last) && !starved(last + 1) && r.bands[last + 1].start_s == r.bands[last].end_s) ++last;
    if (!starved(i)) {
      d += "M" + fixed(axis_.at(r.bands[i].start_s)) + " " + fixed(box.level(r.bands[i].high / full));
      for (std::size_t k = i; k <= last; ++k) d += "V" + fixed(box.level(r.bands[k].high / full)) + "H" + fixed(axis_.at(r.bands[k].end_s));
      for (std::size_t k = last + 1; k-- > i;)
        d += "V" + fixed(box.level(r.bands[k].low / full)) + "H" + fixed(axis_.at(r.bands[k].start_s));
      d += "Z";
    }
    i = last + 1;
  }
  if (d.empty()) return;
  const tasks::transfer& x = graph_.transfers[t];
  // Seams in proportion to the pieces, or many short ones would bleach the picture.
  const double piece = (axis_.at(r.bands[end - 1].end_s) - axis_.at(r.bands[begin].start_s)) / static_cast<double>(end - begin);
  std::string more;
  if (piece > 1) more = " stroke=\"#ffffff\"" + svg_writer::attribute("stroke-width", std::clamp(piece / 8, 0.15, 0.8));
  if (zooming_) more += zooming_->attributes(graph_.node_of_transfer(t));
  out_.path(d, transfer_fill(x.kind, x.from_stage.valid() ? x.from_stage.index() : 0, plan_.stages.size()), hover(t, r), more);
  label(r, begin, end, box, full);
}

HETPLAN_INLINE std::string row_painter::hover(std::uint32_t t, const resource_view& r) const {
  const tasks::transfer& x = graph_.transfers[t];
  const interval& when = trace_.transfers[t];
  std::string text = view_.transfer_name(t) + "\n" + engineering(x.volume_bytes, "B") + " over " + cluster_.network()[r.resource].name +
                     "\n" + during(when.start_s, when.end_s);
  if (x.latency_s > 0) text += ", " + engineering(x.latency_s, "s") + " of it latency";
  if (const double held = view_.held_back_s(t); held > 1e-9 * view_.latency_s()) text += "\nheld back for " + engineering(held, "s");
  text += "\n" + fixed(100 * view_.route_share(t), 1) + " % of its route's peak rate on average";
  return zooming_ ? text + zooming_->lines(graph_.node_of_transfer(t)) : text;
}

HETPLAN_INLINE void row_painter::label(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full) {
  constexpr double size = 10;
  const share_band* widest = &r.bands[begin];  // that has height
  for (std::size_t i = begin; i < end; ++i) {
    const bool taller = widest->high <= widest->low, flat = r.bands[i].high <= r.bands[i].low;
    if (!flat && (taller || r.bands[i].end_s - r.bands[i].start_s > widest->end_s - widest->start_s)) widest = &r.bands[i];
  }
  const double x1 = axis_.at(widest->start_s), x2 = axis_.at(widest->end_s);
  const double y1 = box.level(widest->high / full), y2 = box.level(widest->low / full);
  if (y2 - y1 < size + 1) return;
  const tasks::transfer& x = graph_.transfers[widest->transfer];
  const std::string between = view_.device_name(x.from) + " → " + view_.device_name(x.to);
  const std::string number = std::to_string(x.microbatch), name = view_.device_name(x.to);
  const bool alone = plan_.microbatches == 1 && plan_.pipeline_count() == 1 && plan_.workload.mode != mode::generation;
  const auto candidates = x.kind == transfer_kind::sync ? std::array{between, std::string("sync")}
                          : alone                       ? std::array{between, "→ " + name}
                                                        : std::array{number + " · " + between, number};
  if (zooming_) {
    const text_style style{.size = size, .anchor = "middle"};
    const double whole_at = zooming_label((x1 + x2) / 2, (y1 + y2) / 2, candidates[0], style, x2 - x1 - 1);
    if (whole_at > 1) zooming_label((x1 + x2) / 2, (y1 + y2) / 2, candidates[1], style, x2 - x1 - 1, whole_at);
    return;
  }
  for (const std::string& text : candidates) {
    if (svg_writer::text_width(text, size) + 4 > x2 - x1) continue;
    out_.text((x1 + x2) / 2, (y1 + y2) / 2 + 0.36 * size, text, {.size = size, .anchor = "middle"});
    return;
  }
}

HETPLAN_INLINE void row_painter::contention(const resource_view& r, row_box box) {
  std::vector<resource_load> runs;
  for (const resource_load& l : r.loads) {
    if (l.active < 2) continue;
    const bool touches =
        !runs.empty() && (runs.back().end_s == l.start_s || (merge_ && axis_.at(l.start_s) - axis_.at(runs.back().end_s) < 2));
    if (touches && (runs.back().active == l.active || merge_)) {
      runs.back().end_s = l.end_s;
      runs.back().active = std::max(runs.back().active, l.active);
    } else {
      runs.push_back(l);
    }
  }
  if (runs.empty()) return;
  out_.open_group(" data-mark=\"contention\"");
  for (const resource_load& l : runs) {
    const double x = axis_.at(l.start_s), width = axis_.at(l.end_s) - x;
    const std::string number = (merge_ ? "≤" : "") + std::to_string(l.active);
    out_.rect(x, box.top - 5, zooming_ ? width : std::max(0.5, width), 3, palette::alarm.hex(),
              number + " transfers share " + cluster_.network()[r.resource].name + "\n" + during(l.start_s, l.end_s));
    if (zooming_) {
      zooming_label(x + width / 2, box.top - 10, number, {.size = 8.5, .fill = palette::alarm, .anchor = "middle", .weight = 600},
                    width + 1);
    } else if (width >= svg_writer::text_width(number, 8.5) + 2) {
      out_.text(x + width / 2, box.top - 7, number, {.size = 8.5, .fill = palette::alarm, .anchor = "middle", .weight = 600});
    }
  }
  out_.close_group();
}

}  // namespace hetplan::draw::detail
