// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The rows of a Gantt chart: a device's tasks, its memory, a resource's bands.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/io/svg.hpp>
#include <hetplan/io/trace_view.hpp>

namespace hetplan::io::detail {

/// Time to pixels.
struct time_axis {
  double left = 0, width = 1, latency_s = 1;
  [[nodiscard]] double at(double t) const { return left + width * std::clamp(t / latency_s, 0.0, 1.0); }
  [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(std::max(1.0, std::ceil(width))); }
  [[nodiscard]] std::size_t pixel(double t) const {
    return std::min(pixels() - 1, static_cast<std::size_t>(std::max(0.0, std::floor(at(t) - left))));
  }
};

struct row_box {
  double top = 0, height = 0;
  [[nodiscard]] double level(double share) const { return top + height * (1 - std::clamp(share, 0.0, 1.0)); }
};

/// Reductions are hatched, to stay apart from other transfers in grey print.
[[nodiscard]] inline std::string transfer_fill(transfer_kind k, std::size_t stage = 0, std::size_t stages = 1) {
  return k == transfer_kind::sync ? "url(#hetplan-sync)" : palette::transfer_color(k, stage, stages).hex();
}

/// What is too fine for bars: the mean share of each kind in every pixel, stacked.
template <std::size_t Kinds>
class pixel_areas {
 public:
  pixel_areas(time_axis axis, row_box box) : axis_(axis), box_(box) {
    for (auto& kind : mean_) kind.assign(axis_.pixels(), 0);
  }

  void add(std::size_t kind, double start_s, double end_s, double share) {
    const double pixel_s = axis_.latency_s / static_cast<double>(axis_.pixels());
    for (std::size_t x = axis_.pixel(start_s); x <= axis_.pixel(end_s); ++x) {
      const double from = std::max(start_s, static_cast<double>(x) * pixel_s), to = std::min(end_s, static_cast<double>(x + 1) * pixel_s);
      if (to > from) mean_[kind][x] += (to - from) / pixel_s * share;
    }
  }

  void paint(svg_writer& out, const std::array<std::string, Kinds>& fills, const std::array<std::string, Kinds>& hovers) const {
    std::vector<double> below(axis_.pixels(), 0);
    for (std::size_t k = 0; k < Kinds; ++k) {
      if (std::none_of(mean_[k].begin(), mean_[k].end(), [](double share) { return share > 0; })) continue;
      const auto outline = [&](std::size_t x) { return fixed(box_.level(below[x] + mean_[k][x]), 1); };
      const auto base = [&](std::size_t x) { return fixed(box_.level(below[x]), 1); };
      std::string d = "M" + fixed(axis_.left) + " " + base(0);
      for (std::size_t x = 0; x < below.size(); ++x) {
        if (x == 0 || outline(x) != outline(x - 1)) d += "H" + edge(x) + "V" + outline(x);
      }
      d += "H" + edge(below.size()) + "V" + base(below.size() - 1);
      for (std::size_t x = below.size(); x-- > 0;) {
        if (x == 0 || base(x) != base(x - 1)) d += "H" + edge(x) + "V" + base(x == 0 ? 0 : x - 1);
      }
      out.path(d + "Z", fills[k], hovers[k]);
      for (std::size_t x = 0; x < below.size(); ++x) below[x] += mean_[k][x];
    }
  }

 private:
  [[nodiscard]] std::string edge(std::size_t x) const { return fixed(axis_.left + std::min(static_cast<double>(x), axis_.width)); }

  time_axis axis_;
  row_box box_;
  std::array<std::vector<double>, Kinds> mean_;
};

/// Paints rows into a writer. With `merge` set, short tasks and all transfers are averaged over pixels.
class row_painter {
 public:
  row_painter(svg_writer& out, const plan& p, const cluster& c, const judgement& j, const trace_view& view, time_axis axis, bool merge)
      : out_(out), plan_(p), cluster_(c), graph_(j.graph), trace_(j.trace), view_(view), axis_(axis), merge_(merge) {}

  /// How many tasks were too short for a bar so far.
  [[nodiscard]] std::size_t merged() const { return merged_; }

  void tasks(device_id d, row_box box) {
    out_.rect(axis_.left, box.top, axis_.width, box.height, palette::track.hex());
    if (merge_) density(d, box);
    for (const tasks::node_id n : graph_.device_order[d.index()]) {
      if (view_.ended(n) && !too_fine(n)) task(n, box);
    }
  }

  /// State as a plain level, activations on top; a device's whole usable memory is the full height.
  void memory(device_id d, row_box box) {
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
    const std::string hover = view_.device_name(d) + ": memory at most " + engineering(peak, "B") + " of " + engineering(usable, "B") +
                              (usable < cluster_[d].memory.value() ? " that a plan may use" : "") + "\n" + engineering(state, "B") + " all the time";
    std::string outline = "M" + fixed(axis_.left) + " " + fixed(box.level(state / full));
    for (const auto& [at, held] : levels) outline += "H" + fixed(axis_.at(at)) + "V" + fixed(box.level(held / full));
    outline += "H" + fixed(axis_.left + axis_.width) + "V" + fixed(box.level(state / full)) + "Z";
    if (state > 0) {
      out_.rect(axis_.left, box.level(state / full), axis_.width, box.top + box.height - box.level(state / full), palette::held.hex(), hover);
    }
    if (levels.size() > 1) out_.path(outline, palette::activations.hex(), hover);
    if (peak > usable) out_.line(axis_.left, box.level(usable / full), axis_.left + axis_.width, box.level(usable / full), palette::alarm, 1.5);
  }

  void resource(const resource_view& r, row_box box) {
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

 private:
  [[nodiscard]] double width_of(tasks::node_id n) const { return axis_.at(trace_.computes[n].end_s) - axis_.at(trace_.computes[n].start_s); }
  [[nodiscard]] bool too_fine(tasks::node_id n) const { return merge_ && width_of(n) < 3; }
  [[nodiscard]] color fill_of(tasks::node_id n) const {
    const hetplan::tasks::compute_task& t = graph_.computes[n];
    return palette::phase_color(t.what, t.stage.valid() ? t.stage.index() : 0, plan_.stages.size());
  }
  [[nodiscard]] static std::string during(double start_s, double end_s) {
    return engineering(start_s, "s") + " to " + engineering(end_s, "s") + ", takes " + engineering(end_s - start_s, "s");
  }

  void task(tasks::node_id n, row_box box) {
    const interval& when = trace_.computes[n];
    std::string hover = view_.compute_name(n) + "\n" + during(when.start_s, when.end_s);
    if (const std::string reason = view_.waited_for(n); !reason.empty()) {
      hover += "\nafter " + engineering(view_.idle_before_s(n), "s") + " of waiting for " + reason;
    }
    const color fill = fill_of(n);
    bar(axis_.at(when.start_s), width_of(n), box, fill, hover);
    const hetplan::tasks::compute_task& t = graph_.computes[n];
    const std::string label = t.what == phase::optimizer_step ? std::string(1, letter(t.what)) : std::to_string(t.microbatch);
    for (const double size : {11.0, 9.5, 8.0}) {
      if (size > 0.7 * box.height || svg_writer::text_width(label, size) + 2 > width_of(n)) continue;
      out_.text((axis_.at(when.start_s) + axis_.at(when.end_s)) / 2, box.top + box.height / 2 + 0.36 * size, label,
                {.size = size, .fill = palette::text_on(fill), .anchor = "middle"});
      break;
    }
  }

  /// A line between bars where there is room for one; what takes no time is still seen.
  void bar(double x, double width, row_box box, color fill, std::string_view hover) {
    const double seam = width > 2.5 ? 0.35 : 0;
    out_.rect(x + seam, box.top, std::max(0.5, width - 2 * seam), box.height, fill.hex(), hover, width > 8 ? " rx=\"1.5\"" : "");
  }

  /// Tasks that are too fine for a bar: how much of each pixel goes to each phase.
  void density(device_id d, row_box box) {
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
    for (std::size_t p = 0; p < phase_count; ++p) hovers[p] = std::to_string(count[p]) + " short tasks on " + view_.device_name(d) + ": " + std::string(to_string(static_cast<phase>(p)));
    areas.paint(out_, fills, hovers);
  }

  /// The bands [begin, end) of one transfer: one outline for each run without a gap.
  void transfer(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full) {
    const std::uint32_t t = r.bands[begin].transfer;
    std::string d;
    for (std::size_t i = begin; i < end;) {
      std::size_t last = i;
      while (last + 1 < end && r.bands[last + 1].start_s == r.bands[last].end_s && r.bands[last + 1].high > r.bands[last + 1].low) ++last;
      if (r.bands[i].high > r.bands[i].low) {
        d += "M" + fixed(axis_.at(r.bands[i].start_s)) + " " + fixed(box.level(r.bands[i].high / full));
        for (std::size_t k = i; k <= last; ++k) d += "V" + fixed(box.level(r.bands[k].high / full)) + "H" + fixed(axis_.at(r.bands[k].end_s));
        for (std::size_t k = last + 1; k-- > i;) d += "V" + fixed(box.level(r.bands[k].low / full)) + "H" + fixed(axis_.at(r.bands[k].start_s));
        d += "Z";
      }
      i = last + 1;
    }
    if (d.empty()) return;
    const tasks::transfer& x = graph_.transfers[t];
    // Seams in proportion to the pieces, or many short ones would bleach the picture.
    const double piece = (axis_.at(r.bands[end - 1].end_s) - axis_.at(r.bands[begin].start_s)) / static_cast<double>(end - begin);
    const std::string seam = " stroke=\"#ffffff\"" + svg_writer::attribute("stroke-width", std::clamp(piece / 8, 0.15, 0.8));
    out_.path(d, transfer_fill(x.kind, x.from_stage.valid() ? x.from_stage.index() : 0, plan_.stages.size()), hover(t, r), piece > 1 ? seam : "");
    label(r, begin, end, box, full);
  }

  [[nodiscard]] std::string hover(std::uint32_t t, const resource_view& r) const {
    const tasks::transfer& x = graph_.transfers[t];
    const interval& when = trace_.transfers[t];
    std::string text = view_.transfer_name(t) + "\n" + engineering(x.volume_bytes, "B") + " over " + cluster_.network()[r.resource].name + "\n" +
                       during(when.start_s, when.end_s);
    if (x.latency_s > 0) text += ", " + engineering(x.latency_s, "s") + " of it latency";
    if (const double held = view_.held_back_s(t); held > 1e-9 * view_.latency_s()) text += "\nheld back for " + engineering(held, "s");
    return text + "\n" + fixed(100 * view_.route_share(t), 1) + " % of its route's peak rate on average";
  }

  /// In the widest piece of the band: the microbatch, and between whom where there is room.
  void label(const resource_view& r, std::size_t begin, std::size_t end, row_box box, double full) {
    constexpr double size = 10;
    const share_band* widest = &r.bands[begin];
    for (std::size_t i = begin; i < end; ++i) {
      if (r.bands[i].end_s - r.bands[i].start_s > widest->end_s - widest->start_s) widest = &r.bands[i];
    }
    const double x1 = axis_.at(widest->start_s), x2 = axis_.at(widest->end_s);
    const double y1 = box.level(widest->high / full), y2 = box.level(widest->low / full);
    if (y2 - y1 < size + 1) return;
    const tasks::transfer& x = graph_.transfers[widest->transfer];
    const std::string between = view_.device_name(x.from) + " → " + view_.device_name(x.to);
    const std::string number = std::to_string(x.microbatch);
    const auto candidates = x.kind == transfer_kind::sync ? std::array{between, std::string("sync")} : std::array{number + " · " + between, number};
    for (const std::string& text : candidates) {
      if (svg_writer::text_width(text, size) + 4 > x2 - x1) continue;
      out_.text((x1 + x2) / 2, (y1 + y2) / 2 + 0.36 * size, text, {.size = size, .anchor = "middle"});
      return;
    }
  }

  /// A line above the row wherever transfers share the resource, with their number where it fits.
  void contention(const resource_view& r, row_box box) {
    std::vector<resource_load> runs;
    for (const resource_load& l : r.loads) {
      if (l.active < 2) continue;
      const bool touches = !runs.empty() && (runs.back().end_s == l.start_s || (merge_ && axis_.at(l.start_s) - axis_.at(runs.back().end_s) < 2));
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
      out_.rect(x, box.top - 5, std::max(0.5, width), 3, palette::alarm.hex(),
                number + " transfers share " + cluster_.network()[r.resource].name + "\n" + during(l.start_s, l.end_s));
      if (width >= svg_writer::text_width(number, 8.5) + 2) {
        out_.text(x + width / 2, box.top - 7, number, {.size = 8.5, .fill = palette::alarm, .anchor = "middle", .weight = 600});
      }
    }
    out_.close_group();
  }

  svg_writer& out_;
  const plan& plan_;
  const cluster& cluster_;
  const hetplan::tasks::task_graph& graph_;
  const trace& trace_;
  const trace_view& view_;
  time_axis axis_;
  bool merge_;
  std::size_t merged_ = 0;
};

}  // namespace hetplan::io::detail
