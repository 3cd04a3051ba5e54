// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/gantt.hpp>

#include <utility>

#include <hetplan/plan/describe.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE std::string transfer_fill(transfer_kind k, std::size_t stage, std::size_t stages) {
  return k == transfer_kind::sync ? "url(#hetplan-sync)" : palette::transfer_color(k, stage, stages).hex();
}

HETPLAN_INLINE std::string sync_pattern() {
  return "<defs><pattern id=\"hetplan-sync\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><rect "
         "width=\"5\" height=\"5\" fill=\"" +
         palette::transfer_color(transfer_kind::sync).hex() +
         "\"/><rect width=\"1.5\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.55\"/></pattern></defs>";
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
    if (mine && here.recomputes())
      hover += "\n" + view_.stage_name(stage_id(s)) + " recomputes its activations" +
               (here.recompute == recomputation::blocks ? " block by block" : "");
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
  const double full = r.peak > 1 + 1e-6 ? r.peak : 1;  // above 1 if a capacity was raised during the run
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
  } else {  // without duration, but visible
    out_.path("M" + fixed(x) + " " + fixed(box.top) + "v" + fixed(box.height), fill.hex(), hover, more);
  }
}

HETPLAN_INLINE double row_painter::zooming_label(double x, double middle, const std::string& text, const text_style& style, double room,
                                                 double hide_at) {
  const double show_at = room > 0 ? std::max(1.0, (svg_writer::text_width(text, style.size) + 3) / room) : largest_zoom + 1;
  if (show_at > largest_zoom) return show_at;
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
  const auto starved = [&](std::size_t i) {
    return r.bands[i].high <= r.bands[i].low;
  };  // no height: the transfer waits for more urgent ones
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
  const share_band* widest = &r.bands[begin];  // the widest band with a height
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

namespace hetplan::draw {

namespace detail {

class gantt_painter {
 public:
  gantt_painter(const plan& p, const cluster& c, const judgement& j, const gantt_options& o)
      : plan_(p), cluster_(c), judgement_(j), options_(o), view_(p, c, j), resources_(view_.resources()), width_(std::max(480.0, o.width)) {
    std::size_t bars = j.graph.computes.size();
    for (const resource_view& r : resources_) bars += r.pieces / 4;  // several pieces share an outline
    merge_ = bars > o.max_bars;
    if (!merge_) resources_ = view_.resources(sweep_detail::bands);
    for (std::size_t d = 0; d < c.size(); ++d) {
      if (j.graph.used[d]) devices_.push_back(device_id(d));
    }
    hidden_ = keep_busiest(resources_, c, j.trace, o.max_resources);
    memory_ = o.memory && (!j.trace.memory.empty() || !j.trace.rates.empty());
    axis_.latency_s = j.trace.latency.value() > 0 ? j.trace.latency.value() : 1;
    axis_.left = margin + name_column();
    axis_.width = width_ - axis_.left - number_column - margin;
  }

  [[nodiscard]] std::string paint() && {
    const std::string title = options_.title.empty() ? plan_.model + " on " + plan_.cluster : options_.title;
    const double rows_top = legend(header(title));
    const double rows_end = rows_top + rows_height();
    ticks(rows_top, rows_end);
    row_painter rows(out_, plan_, cluster_, judgement_, view_, axis_, merge_);
    double y = rows_top;
    for (const device_id d : devices_) {
      names(view_.device_name(d), view_.stages_of(d), y, bar_height());
      rows.tasks(d, {y, bar_height()});
      const double busy = judgement_.trace.busy_s[d.index()] / axis_.latency_s;
      number(fixed(100 * busy, 0) + " % busy", y + bar_height() / 2 + 4, palette::ink);
      y += bar_height();
      if (memory_) {
        rows.memory(d, {y + 2, strip_height()});
        const double peak = judgement_.trace.peak_bytes[d.index()], usable = cluster_[d].usable_memory().value();
        number(engineering(peak, "B") + " of " + engineering(usable, "B"), y + 2 + strip_height() / 2 + 4,
               peak > usable ? palette::alarm : palette::quiet);
        y += 2 + strip_height();
      }
      y += gap();
    }
    if (!resources_.empty()) y += section_gap;
    for (const resource_view& r : resources_) {
      y += contention_room;
      resource_row(rows, r, y);
      y += band_height() + gap();
    }
    bound_mark(rows_top, rows_end);
    y = notes(rows_end + 40, rows.merged());
    return std::move(out_).document(width_, y, title);
  }

 private:
  static constexpr double margin = 28, number_column = 118, section_gap = 14, contention_room = 12;

  [[nodiscard]] double bar_height() const { return devices_.size() <= 6 ? 30 : devices_.size() <= 16 ? 22 : 14; }
  [[nodiscard]] double strip_height() const { return devices_.size() <= 6 ? 11 : 7; }
  [[nodiscard]] double band_height() const { return resources_.size() <= 2 ? 72 : resources_.size() <= 6 ? 40 : 24; }
  [[nodiscard]] double gap() const { return devices_.size() <= 16 ? 10 : 5; }
  [[nodiscard]] double rows_height() const {
    const double device = bar_height() + (memory_ ? 2 + strip_height() : 0) + gap();
    const double network =
        resources_.empty() ? 0 : section_gap + static_cast<double>(resources_.size()) * (contention_room + band_height() + gap());
    return static_cast<double>(devices_.size()) * device + network;
  }
  [[nodiscard]] double name_column() const {
    double widest = 60;
    for (const device_id d : devices_) widest = std::max(widest, svg_writer::bold_width(view_.device_name(d), 12.5));
    for (const resource_view& r : resources_) widest = std::max(widest, svg_writer::bold_width(cluster_.network()[r.resource].name, 12.5));
    return std::min(widest, 0.2 * width_) + 12;
  }

  /// Returns the certificate in words: the largest possible gap between latency and bound.
  [[nodiscard]] static std::string certificate(const evaluation& e) {
    const bool of_placement = e.placement_bound.value() > 0;
    const double slower = readable_gap(of_placement ? e.latency / e.placement_bound - 1 : e.gap);
    if (of_placement && slower == 0) return ", no schedule of single operators is faster";
    if (!of_placement && e.bound.value() <= 0) return {};
    return ", at most " + fixed(100 * slower, slower < 1 ? 1 : 0) + " % slower than the best " +
           (of_placement ? "schedule of single operators" : "plan");
  }

  /// Paints title and plan on the left, cost on the right. Returns the lower edge.
  double header(const std::string& title) {
    const evaluation& e = judgement_.evaluation;
    const double right = width_ - margin;
    const auto room = static_cast<std::size_t>((width_ - 2 * margin - 330) / 10.8);
    out_.text(margin, 42, fitted(title, room), {.size = 18, .weight = 600});
    std::string facts = plan_.planner + " · " + std::string(to_string(plan_.workload.mode)) + " · " + describe_microbatches(plan_);
    if (plan_.workload.mode == mode::training) facts += " · " + std::string(to_string(plan_.schedule.kind));
    if (plan_.transfers == transfer_mode::block) facts += " · transfers block: they are in the tasks at both ends";
    if (plan_.sharing_policy != sharing::fair_share) facts += " · network: " + std::string(to_string(plan_.sharing_policy));
    out_.text(margin, 63, fitted(facts, static_cast<std::size_t>((width_ - 2 * margin - 330) / 7.2)), {.size = 12, .fill = palette::quiet});
    const std::string response =
        e.time_between_tokens ? engineering(e.time_between_tokens->value(), "s") + " per token" : engineering(e.latency.value(), "s");
    out_.text(right, 42, response, {.size = 18, .anchor = "end", .weight = 600});
    std::string gap = e.time_between_tokens ? "all tokens: " + engineering(e.latency.value(), "s") : "latency";
    gap += certificate(e);
    out_.text(right, 63, gap, {.size = 12, .fill = palette::quiet, .anchor = "end"});
    return 80;
  }

  struct legend_item {
    std::vector<std::string> fills;
    std::string text;
    bool line = false;
  };

  /// Paints a legend of the colours in use. Returns the upper edge of the rows.
  double legend(double y) {
    std::array<bool, phase_count> phases{};
    std::array<bool, transfer_kind_count> kinds{};
    for (const auto& t : judgement_.graph.computes) phases[static_cast<std::size_t>(t.what)] = true;
    for (const auto& t : judgement_.graph.transfers) kinds[static_cast<std::size_t>(t.kind)] = true;
    const std::array<std::string, phase_count> names = phase_names(judgement_.graph);
    std::vector<legend_item> items;
    const std::size_t stages = plan_.stages.size();
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (!phases[i]) continue;
      legend_item item{.fills = {}, .text = names[i]};
      for (std::size_t s = 0; s < std::min<std::size_t>(stages, 3); ++s)
        item.fills.push_back(palette::phase_color(static_cast<phase>(i), s, std::min<std::size_t>(stages, 3)).hex());
      items.push_back(item);
    }
    if (stages > 1 && !items.empty()) items.back().text += " (lighter: later stage)";
    if (memory_) items.push_back({.fills = {palette::held.hex(), palette::activations.hex()}, .text = "memory: state, activations"});
    const std::size_t network_items = items.size();
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      if (kinds[i] && !resources_.empty())
        items.push_back({.fills = {transfer_fill(static_cast<transfer_kind>(i))}, .text = std::string(transfer_kind_names[i])});
    }
    const bool contended = std::any_of(resources_.begin(), resources_.end(), [](const resource_view& r) { return r.contended_s() > 0; });
    if (contended) items.push_back({.fills = {palette::alarm.hex()}, .text = "contention: how many transfers share", .line = true});
    out_.raw(sync_pattern() + "\n");
    const auto swatch_width = [](const legend_item& item) {
      return item.fills.size() > 1 ? 9.0 * static_cast<double>(item.fills.size()) : 16;
    };
    const auto item_width = [&](const legend_item& item) { return swatch_width(item) + 6 + svg_writer::prose_width(item.text, 11) + 20; };
    double x = margin, all = margin;
    for (const legend_item& item : items) all += item_width(item);
    const bool one_line = all <= width_ - margin + 20;
    for (std::size_t n = 0; n < items.size(); ++n) {
      const legend_item& item = items[n];
      const double swatch = swatch_width(item), needed = item_width(item);
      const bool network_begins = n == network_items && !one_line;
      if (x > margin && (network_begins || x + needed > width_ - margin + 20)) x = margin, y += 20;
      const double each = swatch / static_cast<double>(item.fills.size());
      for (std::size_t i = 0; i < item.fills.size(); ++i) {
        out_.rect(x + each * static_cast<double>(i), item.line ? y + 9 : y + 5, each, item.line ? 3 : 11, item.fills[i]);
      }
      out_.text(x + swatch + 6, y + 15, item.text, {.fill = palette::quiet});
      x += needed;
    }
    return y + 46;
  }

  void ticks(double top, double bottom) {
    tick_rule(axis_, time_labels::seconds).paint(out_, top - 10, bottom);
    out_.line(axis_.left, bottom + 4, axis_.left + axis_.width, bottom + 4, palette::frame);
  }

  void bound_mark(double top, double bottom) {
    const double bound = std::max(judgement_.evaluation.bound, judgement_.evaluation.placement_bound).value();
    if (bound <= 0 || bound >= 0.999 * axis_.latency_s) return;  // too close to the end to tell anything
    const double x = axis_.at(bound);
    out_.line(x, top - 10, x, bottom + 4, palette::ink, 1, " stroke-dasharray=\"2 3\"");
    out_.text(x, top - 13, "bound", {.size = 9.5, .anchor = "middle"});
  }

  void names(std::string_view name, std::string_view below, double top, double height) {
    const auto room = [&](double size, double per_character) {
      return static_cast<std::size_t>(std::max(1.0, (axis_.left - margin - 8) / (per_character * size)));
    };
    const bool two_lines = height >= 24 && !below.empty();
    const double size = std::min(12.5, height * 0.75), middle = top + height / 2;
    out_.text(margin, two_lines ? middle - 2 : middle + 0.36 * size, fitted(name, room(size, 0.69)), {.size = size, .weight = 600});
    if (two_lines) out_.text(margin, middle + 12, fitted(below, room(10.5, 0.6)), {.size = 10.5, .fill = palette::quiet});
  }
  void number(std::string_view text, double baseline, color fill) {
    out_.text(width_ - margin, baseline, text, {.size = 11, .fill = fill, .anchor = "end"});
  }

  void resource_row(row_painter& rows, const resource_view& r, double y) {
    const resource& net = cluster_.network()[r.resource];
    names(net.name, engineering(8 * net.capacity.value(), "bit/s"), y, band_height());
    rows.resource(r, {y, band_height()});
    const double used = judgement_.trace.resource_bytes[r.resource.index()] / (net.capacity.value() * axis_.latency_s);
    const double contended = r.contended_s() / axis_.latency_s, middle = y + band_height() / 2;
    const bool both = contended > 0 && band_height() >= 24;
    number(fixed(100 * used, 0) + " % used", both ? middle - 3 : middle + 4, palette::ink);
    if (both) number((contended < 0.01 ? "<1" : fixed(100 * contended, 0)) + " % contended", middle + 12, palette::alarm);
  }

  /// Writes notes on omissions below the axis. Returns the height of the picture.
  double notes(double y, std::size_t merged) {
    std::vector<std::string> lines;
    if (merge_) {
      lines.push_back(std::to_string(merged) +
                      " short tasks and all transfers are averaged over each pixel: heights are shares of time and of capacity.");
    }
    if (hidden_ > 0)
      lines.push_back("The " + std::to_string(resources_.size()) + " busiest resources are shown, " + std::to_string(hidden_) +
                      " quieter ones are not.");
    if (!resources_.empty() && !resources_.front().recorded)
      lines.emplace_back("Rates were not recorded: bands show which transfers are under way, not how much they get.");
    if (!judgement_.trace.status.ok()) lines.push_back("Incomplete: " + judgement_.trace.status.reason + ".");
    for (const std::string& line : lines) {
      out_.text(margin, y, line, {.size = 10.5, .fill = palette::quiet});
      y += 16;
    }
    return y + (lines.empty() ? 4 : 8);
  }

  const plan& plan_;
  const cluster& cluster_;
  const judgement& judgement_;
  const gantt_options& options_;
  trace_view view_;
  std::vector<resource_view> resources_;
  std::vector<device_id> devices_;
  double width_;
  time_axis axis_;
  bool merge_ = false, memory_ = false;
  std::size_t hidden_ = 0;
  svg_writer out_;
};

}  // namespace detail

HETPLAN_INLINE std::string gantt_svg(const plan& p, const cluster& c, const judgement& j, const gantt_options& options) {
  return detail::gantt_painter(p, c, j, options).paint();
}

}  // namespace hetplan::draw
