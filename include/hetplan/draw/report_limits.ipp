// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/report_limits.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <hetplan/draw/page.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::draw::detail {

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

HETPLAN_INLINE std::string limits_charts(const run_explanation& x, const cluster& c, const evaluation& e) {
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

}  // namespace hetplan::draw::detail
