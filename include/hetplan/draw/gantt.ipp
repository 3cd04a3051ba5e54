// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/gantt.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/ticks.hpp>

namespace hetplan::draw {

namespace detail {

/// Lays out and paints one chart.
class gantt_painter {
 public:
  gantt_painter(const plan& p, const cluster& c, const judgement& j, const gantt_options& o)
      : plan_(p), cluster_(c), judgement_(j), options_(o), view_(p, c, j), resources_(view_.resources()), width_(std::max(480.0, o.width)) {
    std::size_t bars = j.graph.computes.size();
    for (const resource_view& r : resources_) bars += r.pieces / 4;  // several pieces are one outline
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

  /// What it certifies of the latency.
  [[nodiscard]] static std::string certificate(const evaluation& e) {
    const bool of_placement = e.placement_bound.value() > 0;
    const double slower = readable_gap(of_placement ? e.latency / e.placement_bound - 1 : e.gap);
    if (of_placement && slower == 0) return ", no schedule of single operators is faster";
    if (!of_placement && e.bound.value() <= 0) return {};
    return ", at most " + fixed(100 * slower, slower < 1 ? 1 : 0) + " % slower than the best " +
           (of_placement ? "schedule of single operators" : "plan");
  }

  /// Title and what was planned on the left, what it costs on the right; returns where they end.
  double header(const std::string& title) {
    const evaluation& e = judgement_.evaluation;
    const double right = width_ - margin;
    const auto room = static_cast<std::size_t>((width_ - 2 * margin - 330) / 10.8);
    out_.text(margin, 42, fitted(title, room), {.size = 18, .weight = 600});
    std::string facts = plan_.planner + " · " + std::string(to_string(plan_.workload.mode)) + " · " + std::to_string(plan_.microbatches) +
                        (plan_.microbatches == 1 ? " microbatch of " : " microbatches of ") + std::to_string(plan_.microbatch_size);
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

  /// Only what occurs in this chart; returns where the rows may begin.
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
    out_.raw(
        "<defs><pattern id=\"hetplan-sync\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect "
        "width=\"5\" height=\"5\" fill=\"" +
        palette::transfer_color(transfer_kind::sync).hex() +
        "\"/><rect width=\"1.5\" height=\"5\" fill=\"#ffffff\" fill-opacity=\"0.55\"/></pattern></defs>\n");
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

  /// The time axis below, with lines through all rows.
  void ticks(double top, double bottom) {
    paint_ticks(out_, axis_, second_ticks(axis_), top - 10, bottom);
    out_.line(axis_.left, bottom + 4, axis_.left + axis_.width, bottom + 4, palette::frame);
  }

  /// No plan can end before this line.
  void bound_mark(double top, double bottom) {
    const double bound = std::max(judgement_.evaluation.bound, judgement_.evaluation.placement_bound).value();
    if (bound <= 0 || bound >= 0.999 * axis_.latency_s) return;  // at the end it says nothing
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

  /// What the chart leaves out, below the axis; returns the height of the picture.
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
