// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/page.hpp>

#include <string_view>

#include <hetplan/core/linkage.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

// How the report looks. Colours that pictures carry themselves are turned for dark screens here.

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

HETPLAN_INLINE std::string fact(std::string_view value, std::string_view about, std::string_view id, bool alarm) {
  return "<div id=\"" + std::string(id) + "\"" + (alarm ? " class=\"alarm\"" : "") + "><b>" + xml_text(value) + "</b><span>" +
         xml_text(about) + "</span></div>\n";
}

HETPLAN_INLINE std::string percent(double share) {
  if (share > 0 && share < 5e-5) return "<0.01 %";
  return fixed(100 * share, share < 0.1 ? 2 : share < 1 ? 1 : 0) + " %";
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

}  // namespace hetplan::draw::detail
