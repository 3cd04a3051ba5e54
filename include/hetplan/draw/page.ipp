// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/page.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <hetplan/core/error.hpp>
#include <hetplan/io/json_text.hpp>

namespace hetplan::draw::detail {

// Style of pages. Dark screens override colours that pictures contain.

inline constexpr std::string_view report_style = R"css(
:root { --paper: #ffffff; --page: #f3f5f8; --ink: #1f2933; --quiet: #626e7b; --line: #d6dce3; --track: #f5f7f9; --alarm: #b71642;
  --accent: #1f5fa8; --meter: #7aade0; --queue: #c85a00; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; }
main { max-width: 1280px; margin: 0 auto; padding: 24px; }
header, section { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 20px 24px; margin: 0 0 18px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 17px; margin: 0 0 4px; }
p { margin: 4px 0 10px; max-width: 130ch; }
.quiet, .note, section > p { color: var(--quiet); }
.note { font-size: 12.5px; margin: 6px 0 0; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 16px 0 0; }
.facts div { border: 1px solid var(--line); border-radius: 9px; padding: 9px 13px; }
.facts b { display: block; font-size: 20px; line-height: 1.3; font-weight: 650; }
.facts span { color: var(--quiet); font-size: 12.5px; }
.facts .alarm b, .alarm { color: var(--alarm); }
nav { margin-top: 14px; display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; }
a { color: var(--accent); }
table { border-collapse: collapse; font-size: 13px; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--quiet); border-bottom: 1px solid var(--line); padding: 5px 12px 5px 0;
  white-space: nowrap; }
td { border-top: 1px solid var(--line); padding: 5px 12px 5px 0; vertical-align: top; overflow-wrap: anywhere; }
tbody tr:first-child td { border-top: 0; }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
td.lost { color: var(--alarm); }
#critical-totals { width: auto; margin: 10px 0 12px; }
#critical-totals td { border: 0; padding: 1px 18px 1px 0; }
#critical-links tbody tr { cursor: zoom-in; }
#critical-links tbody tr:hover, #critical-links tbody tr:focus { background: var(--track); outline: none; }
#critical-links td:first-child { border-left: 4px solid var(--meter); padding-left: 10px; }
#critical-links tr.compute td:first-child { border-left-color: var(--accent); }
.scroll { max-height: 420px; overflow: auto; border: 1px solid var(--line); border-radius: 8px; }
.scroll th { position: sticky; top: 0; background: var(--paper); padding-left: 10px; }
.scroll td { padding-left: 10px; }
summary { cursor: pointer; margin: 4px 0 8px; }
.meter { display: inline-block; width: 90px; height: 9px; border-radius: 3px; background: var(--line); margin-right: 9px;
  overflow: hidden; }
.meter i { display: block; height: 100%; background: var(--meter); }
.meter.over i { background: var(--alarm); }
.share { display: flex; height: 22px; border-radius: 5px; overflow: hidden; background: var(--track); }
.share i { display: block; height: 100%; }
.named { display: grid; grid-template-columns: 90px 1fr; gap: 4px 12px; align-items: center; margin: 14px 0 0; font-size: 12.5px;
  color: var(--quiet); }
.named + .named { margin-top: 5px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 20px; font-size: 12.5px; color: var(--quiet); margin: 8px 0 12px; }
.swatch { display: inline-block; width: 14px; height: 11px; vertical-align: -1px; margin-right: 1px; }
.swatch:last-of-type { margin-right: 7px; }
.swatch.line { height: 3px; vertical-align: 3px; }
.swatch.dot { width: 11px; border-radius: 50%; }
.swatch.hatched { background-image: repeating-linear-gradient(135deg, rgba(255,255,255,.6) 0 1.5px, transparent 1.5px 5px); }
.tools { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; margin: 10px 0 6px; }
.tools .note { margin: 0 0 0 8px; }
button { font: inherit; font-size: 13px; color: var(--ink); background: var(--track); border: 1px solid var(--line); border-radius: 7px;
  padding: 3px 11px; cursor: pointer; }
button:hover { border-color: var(--quiet); }
button[aria-pressed="true"] { background: var(--alarm); border-color: var(--alarm); color: #fff; }
.chart { overflow-x: auto; }
svg { display: block; width: 100%; min-width: 760px; height: auto; }
svg text { font-family: inherit; }
.over-time { touch-action: pan-y; }
.over-time:focus { outline: none; }
.over-time:focus-visible { outline: 2px solid var(--accent); outline-offset: 4px; }
.over-time .catch, .over-time .plot { cursor: crosshair; }
.over-time text { pointer-events: none; user-select: none; }
.plot * { vector-effect: non-scaling-stroke; }
.plot text { transform: scaleX(calc(1 / var(--zoom, 1))); transform-box: fill-box; transform-origin: center; }
.span { fill: var(--accent); fill-opacity: .16; stroke: var(--accent); pointer-events: none; }
.mark-critical .bars > .c { stroke: var(--alarm); stroke-width: 1.8; }
.mark-critical .bars > :not(.c):not(text):not([fill="#f5f7f9"]) { opacity: .28; }
.heat { --heat: var(--accent); color: var(--heat); }
.heat.queue { --heat: var(--queue); }
.heat path { shape-rendering: crispEdges; }
.heat text, .legend .heat b { fill: var(--ink); color: var(--quiet); font-weight: inherit; pointer-events: none; }
.heat text.on-deep { fill: var(--paper); }
.legend .depth { display: inline-block; width: 16px; height: 11px; vertical-align: -1px; background: var(--heat); }
.legend .heat b { margin: 0 6px 0 0; }
.legend .heat i + b { margin: 0 0 0 6px; }
.offered { stroke: var(--ink); }
.offered.halo { stroke: var(--paper); stroke-opacity: .8; }
.ring { stroke: var(--line); }
.merge { stroke: var(--ink); }
.merge.inside { stroke: var(--accent); }
.around { fill: none; stroke: var(--ink); pointer-events: none; }
.mark.fault { color: var(--alarm); }
.mark.change { color: var(--quiet); }
.mark text { fill: currentColor; }
.flow { fill: var(--accent); fill-opacity: .5; }
.flow:hover { fill: var(--queue); fill-opacity: 1; }
.beside { display: flex; flex-wrap: wrap; gap: 12px 32px; align-items: flex-start; }
.beside > * { flex: 1 1 360px; min-width: 0; }
#tip { position: fixed; z-index: 9; max-width: 440px; padding: 8px 12px; border-radius: 8px; background: #1b242e; color: #f4f7fa;
  font-size: 12.5px; line-height: 1.45; white-space: pre-line; overflow-wrap: anywhere; pointer-events: none;
  box-shadow: 0 4px 18px rgba(0,0,0,.3); }
#tip::first-line { font-weight: 650; }
#tip[hidden] { display: none; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #171c22; --page: #0e1216; --ink: #e4e9ef; --quiet: #9aa6b3; --line: #303943; --track: #20272f; --alarm: #f0557c;
    --accent: #7fb4ee; --meter: #4f83b8; --queue: #ff9f4a; }
  svg [fill="#f5f7f9"] { fill: var(--track); }
  svg > text[fill="#1f2933"], .plot text[font-size="9.5"][fill="#1f2933"] { fill: var(--ink); }
  svg text[fill="#626e7b"] { fill: var(--quiet); }
  svg text[fill="#b71642"] { fill: var(--alarm); }
  svg line[stroke="#e4e8ed"], svg line[stroke="#d6dce3"] { stroke: var(--line); }
  svg line[stroke="#1f2933"] { stroke: var(--ink); }
  svg [stroke="#ffffff"] { stroke: var(--paper); }
  .mark-critical .bars > :not(.c):not(text):not([fill="#f5f7f9"]) { opacity: .35; }
}
@media print {
  body { background: #fff; }
  main { max-width: none; padding: 0; }
  .tools { display: none; }
  .scroll { max-height: none; }
  section { break-inside: avoid; }
}
)css";

[[nodiscard]] HETPLAN_INLINE std::string json_attribute(std::string_view name, const io::json& value) {
  return " data-" + std::string(name) + "=\"" + xml_text(value.dump(-1, ' ', false, io::json::error_handler_t::replace)) + "\"";
}

HETPLAN_INLINE std::string fact(std::string_view value, std::string_view about, std::string_view id, bool alarm) {
  return "<div id=\"" + std::string(id) + "\"" + (alarm ? " class=\"alarm\"" : "") + "><b>" + xml_text(value) + "</b><span>" +
         xml_text(about) + "</span></div>\n";
}

HETPLAN_INLINE std::string percent(double share) {
  if (share > 0 && share < 5e-5) return "<0.01 %";
  return fixed(100 * share, share < 0.1 ? 2 : share < 1 ? 1 : 0) + " %";
}

HETPLAN_INLINE std::string zoom_tools(const std::string& whole, std::string_view more_buttons, std::string_view more_words) {
  std::string text = "<div class=\"tools\">";
  for (const auto& [id, more, words] : std::array<std::array<std::string, 3>, 5>{{{"zoom-in", "", "Zoom in"},
                                                                                  {"zoom-out", "", "Zoom out"},
                                                                                  {"pan-left", " aria-label=\"earlier\"", "◀"},
                                                                                  {"pan-right", " aria-label=\"later\"", "▶"},
                                                                                  {"zoom-reset", "", "Whole " + whole}}})
    text += "<button id=\"" + id + "\" type=\"button\"" + more + ">" + words + "</button>";
  return text + std::string(more_buttons) +
         "<span class=\"note\">Drag to zoom to a span, Ctrl + wheel to zoom, Shift + wheel to move; double-click for the whole " + whole +
         "." + std::string(more_words) + "</span></div>\n";
}

HETPLAN_INLINE std::string page(std::string_view title, std::string_view body) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
         "dark\">\n<title>" +
         xml_text(title) + "</title>\n<style>" + std::string(report_style) + "</style>\n</head>\n<body>\n<main>\n" + std::string(body) +
         "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>" + std::string(report_script) + "</script>\n</body>\n</html>\n";
}

HETPLAN_INLINE std::string section(std::string_view id, std::string_view title, std::string_view about, std::string_view content) {
  return "<section id=\"" + std::string(id) + "\">\n<h2>" + std::string(title) + "</h2>\n<p>" + std::string(about) + "</p>\n" +
         std::string(content) + "</section>\n";
}

HETPLAN_INLINE std::string cell(std::string_view text, std::string_view more) {
  return "<td" + std::string(more) + ">" + xml_text(text) + "</td>";
}

HETPLAN_INLINE std::string meter(double share, bool alarm, std::string_view text) {
  return "<td><span class=\"meter" + std::string(alarm ? " over" : "") +
         "\"><i style=\"width:" + fixed(100 * std::clamp(share, 0.0, 1.0), 1) + "%\"></i></span>" + xml_text(text) + "</td>";
}

HETPLAN_INLINE time_chart::time_chart(double latency_s, time_labels labels) : labels_(labels) {
  axis_.left = left;
  axis_.width = width - left - numbers;
  axis_.latency_s = latency_s > 0 ? latency_s : 1;
}

HETPLAN_INLINE void time_chart::name(std::string_view name, std::string_view below, double top, double height) {
  const bool two_lines = height >= 24 && !below.empty();
  const double size = std::min(12.5, height * 0.75), middle = top + height / 2;
  const auto room = [](double at, double per_character) { return static_cast<std::size_t>((left - 12) / (per_character * at)); };
  still.text(0, two_lines ? middle - 2 : middle + 0.36 * size, fitted(name, room(size, 0.66)), {.size = size, .weight = 600});
  if (two_lines) still.text(0, middle + 12, fitted(below, room(10.5, 0.57)), {.size = 10.5, .fill = palette::quiet});
}

HETPLAN_INLINE void time_chart::number(std::string_view text, double baseline, color fill) {
  still.text(width, baseline, text, {.size = 11, .fill = fill, .anchor = "end"});
}

[[nodiscard]] HETPLAN_INLINE io::json ticks_for_script(const tick_rule& rule) {
  io::json units = io::json::array();
  for (const unit_of_time& u : units_of_time) units.push_back(io::json::array({u.seconds, std::string(u.name)}));
  return {{"clock", rule.labels == time_labels::clock}, {"units", std::move(units)}, {"steps", rule.steps}, {"zoom", largest_zoom}};
}

HETPLAN_INLINE std::string time_chart::finish(std::string_view id, std::string_view label, double top, double bottom,
                                              std::string_view definitions) && {
  svg_writer all;
  all.raw(definitions);
  const std::string clip = "clip-" + std::string(id);
  const double height = bottom + 30;
  all.raw("<defs><clipPath id=\"" + clip + "\"><rect" + svg_writer::attribute("x", left - 0.5) + " y=\"0\"" +
          svg_writer::attribute("width", axis_.width + 1) + svg_writer::attribute("height", bottom + 4) + "/></clipPath></defs>\n");
  all.raw("<rect class=\"catch\" fill=\"transparent\"" + svg_writer::attribute("x", left) + svg_writer::attribute("y", 0) +
          svg_writer::attribute("width", axis_.width) + svg_writer::attribute("height", height) + "/>\n");
  const tick_rule rule(axis_, labels_);
  paint_time_axis(all, rule, top, bottom);
  all.raw("<g clip-path=\"url(#" + clip + ")\"><g class=\"plot\">\n");
  all.append(std::move(plot));
  all.raw("</g></g>\n");
  all.append(std::move(still));
  all.raw("<rect class=\"span\"" + svg_writer::attribute("y", top) + svg_writer::attribute("height", bottom - top + 4) +
          " width=\"0\" x=\"0\" visibility=\"hidden\"/>\n");
  return std::move(all).embedded(width, height, label,
                                 " id=\"" + std::string(id) + "\" class=\"over-time\" tabindex=\"0\"" +
                                     svg_writer::attribute("data-left", left) + svg_writer::attribute("data-width", axis_.width) +
                                     " data-seconds=\"" + to_text(axis_.latency_s) + "\"" +
                                     json_attribute("ticks", ticks_for_script(rule)));
}

HETPLAN_INLINE std::size_t heat_depth(double value, double most) {
  if (!(value > 0) || !(most > 0)) return 0;
  return static_cast<std::size_t>(std::ceil(std::sqrt(std::min(1.0, value / most)) * static_cast<double>(heat_depths) - 1e-9));
}

[[nodiscard]] HETPLAN_INLINE std::string opacity_of(std::size_t depth) {
  return fixed(0.08 + 0.92 * static_cast<double>(depth) / static_cast<double>(heat_depths), 2);
}

HETPLAN_INLINE void paint(svg_writer& out, const heat_grid& g) {
  if (g.values.empty() || g.columns.empty()) return;
  const double wide = g.column_width(), high = g.row_height();
  std::array<std::string, heat_depths> cells;
  for (std::size_t r = 0; r < g.values.size(); ++r) {
    const auto& row = g.values[r];
    const std::string y = fixed(g.top + static_cast<double>(r) * high, 2), h = fixed(high, 2);
    for (std::size_t c = 0, end = 0; c < row.size(); c = end) {
      const std::size_t d = g.depth(r, c);
      for (end = c + 1; end < row.size() && g.depth(r, end) == d;) ++end;
      if (d == 0) continue;
      const std::string w = fixed(static_cast<double>(end - c) * wide, 2);
      cells[d - 1] += "M" + fixed(g.left + static_cast<double>(c) * wide, 2) + " " + y + "h" + w + "v" + h + "h-" + w + "z";
    }
  }
  out.rect(g.left, g.top, g.width, g.height, palette::track.hex());
  out.open_group(" class=\"heat " + std::string(g.kind) + "\"");
  for (std::size_t d = 0; d < heat_depths; ++d) {
    if (!cells[d].empty()) out.path(cells[d], "currentColor", {}, " fill-opacity=\"" + opacity_of(d + 1) + "\"");
  }
  const auto fits = [&](const std::vector<double>& row) {
    return std::ranges::all_of(row, [&](double v) { return svg_writer::text_width(short_number(v), 11) <= wide - 6; });
  };
  const bool numbers = high >= 12 && std::ranges::all_of(g.values, fits);
  for (std::size_t r = 0; numbers && r < g.values.size(); ++r) {
    for (std::size_t c = 0; c < g.values[r].size(); ++c) {
      const double v = g.values[r][c];
      if (v <= 0) continue;
      const bool deep = 2 * g.depth(r, c) > heat_depths + 1;
      out.text(g.left + (static_cast<double>(c) + 0.5) * wide, g.top + (static_cast<double>(r) + 0.5) * high + 4, short_number(v),
               {.anchor = "middle"}, deep ? " class=\"on-deep\"" : " class=\"on-pale\"");
    }
  }
  out.close_group();
  std::string values;
  for (std::size_t r = 0; r < g.values.size(); ++r) {
    if (r > 0) values += ";";
    for (std::size_t c = 0; c < g.values[r].size(); ++c)
      values += (c > 0 ? "," : "") + (std::isfinite(g.values[r][c]) ? fixed(g.values[r][c], 2) : "∞");
  }
  const std::string id = g.id.empty() ? std::string() : " id=\"" + std::string(g.id) + "\"";
  out.rect(g.left, g.top, g.width, g.height, "transparent", {},
           id + " class=\"grid\"" + json_attribute("rows", g.rows) + json_attribute("columns", g.columns) +
               json_attribute("units", g.units) + " data-values=\"" + values + "\"");
}

HETPLAN_INLINE std::string heat_legend(std::string_view kind, std::string_view least, std::string_view most) {
  std::string text = "<span class=\"heat " + std::string(kind) + "\"><b>" + xml_text(least) + "</b>";
  for (std::size_t d = 1; d <= heat_depths; ++d) text += "<i class=\"depth\" style=\"opacity:" + opacity_of(d) + "\"></i>";
  return text + "<b>" + xml_text(most) + "</b></span>";
}

}  // namespace hetplan::draw::detail
