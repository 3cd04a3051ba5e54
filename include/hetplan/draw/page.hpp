// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Parts of all pages: frame with style and script, sections, facts, charts over time, heat maps.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/version.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/draw/time_axis.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::draw::detail {

/// Script of every page: zooms all charts over time together, shows hover texts, marks the critical path. Plain JavaScript without
/// libraries, network or eval. Sets data-ready="1" on the page once it runs, and data-error on errors. Without it the page does not zoom.
inline constexpr std::string_view report_script = R"js(
"use strict";
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message || "error";
});

(() => {
  const charts = [...document.querySelectorAll("svg.over-time")].map((svg) => ({
    svg,
    left: Number(svg.dataset.left),
    width: Number(svg.dataset.width),
    seconds: Number(svg.dataset.seconds),
    plot: svg.querySelector(".plot"),
    ticks: svg.querySelector(".ticks"),
    span: svg.querySelector(".span"),
    labels: [...svg.querySelectorAll("text[data-show]")],
    rule: JSON.parse(svg.dataset.ticks),
  }));
  const SMALLEST_SPAN = 1 / (charts[0]?.rule.zoom ?? 1);  // of the run
  const view = { from: 0, to: 1 };  // shares of the run; all charts show the same

  // --- the view ---

  function show(from, to) {
    const length = Math.min(1, Math.max(SMALLEST_SPAN, to - from));
    const middle = (from + to) / 2;
    view.from = Math.min(1 - length, Math.max(0, middle - length / 2));
    view.to = view.from + length;
    document.documentElement.dataset.from = view.from.toFixed(6);
    document.documentElement.dataset.to = view.to.toFixed(6);
    charts.forEach(draw);
  }

  /// Stretches what lies over time; texts are squeezed back by the style sheet.
  function draw(chart) {
    const zoom = 1 / (view.to - view.from);
    const shift = chart.left - zoom * (chart.left + view.from * chart.width);
    chart.plot.setAttribute("transform", `matrix(${zoom} 0 0 1 ${shift} 0)`);
    chart.plot.style.setProperty("--zoom", zoom);
    for (const label of chart.labels) {
      const fits = zoom >= Number(label.dataset.show) * 0.999 && zoom < Number(label.dataset.hide || Infinity);
      label.setAttribute("visibility", fits ? "visible" : "hidden");
    }
    drawTicks(chart);
  }

  /// Ticks as tick_rule of the program has them, by its constants.
  function drawTicks(chart) {
    const { steps } = chart.rule;
    const [from, to] = [chart.seconds * view.from, chart.seconds * view.to];
    const step = (steps.find(([until]) => to - from <= until) ?? steps.at(-1))[1];
    const line = chart.ticks.querySelector("line").cloneNode();
    const text = chart.ticks.querySelector("text").cloneNode();
    chart.ticks.replaceChildren();
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * chart.seconds; ++i) {
      const x = chart.left + (chart.width * (i * step - from)) / (to - from);
      const tick = line.cloneNode();
      tick.setAttribute("x1", x);
      tick.setAttribute("x2", x);
      const words = text.cloneNode();
      words.setAttribute("x", x);
      words.textContent = label(i * step, to - from, chart.rule);
      chart.ticks.append(tick, words);
    }
  }

  function label(at, span, { clock, units }) {
    const decimal = (n) => Number(n.toFixed(6));
    if (!clock) {
      const [seconds, name] = units.find(([seconds]) => seconds <= 1 && span >= seconds) ?? units.at(-1);
      return `${decimal(at / seconds)} ${name}`;
    }
    const parts = [];
    for (const [seconds, name] of units) {
      if (at < seconds * (1 - 1e-9)) continue;
      const n = seconds > 1 ? Math.floor(at / seconds + 1e-9) : at / seconds;
      parts.push(`${decimal(n)} ${name}`);
      at = seconds > 1 ? at - n * seconds : 0;
    }
    return parts.join(" ") || "0";
  }

  function zoom(factor, at = (view.from + view.to) / 2) {
    const length = Math.min(1, Math.max(SMALLEST_SPAN, (view.to - view.from) * factor));
    const from = at - (at - view.from) * (length / (view.to - view.from));
    show(from, from + length);
  }

  function pan(share) {
    const by = share * (view.to - view.from);
    show(view.from + by, view.to + by);
  }

  // --- wheel, drag, keys, buttons ---

  /// Where the pointer is, as a share of the run; may lie outside [0, 1].
  function timeAt(chart, event) {
    const box = chart.svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) * chart.svg.viewBox.baseVal.width) / box.width;
    return view.from + ((x - chart.left) / chart.width) * (view.to - view.from);
  }

  /// The wheel belongs to the page unless Ctrl is held (a pinch says so, too); sideways it pans.
  function onWheel(chart, event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 150), timeAt(chart, event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      pan((event.deltaX || event.deltaY) / 800);
    }
  }

  /// Dragging marks a span of time and zooms to it.
  let drag = null;

  function onDown(chart, event) {
    const at = timeAt(chart, event);
    if (event.button !== 0 || at < view.from || at > view.to) return;
    drag = { chart, at };
  }

  function onMove(event) {
    if (!drag) return;
    const { chart, at } = drag;
    const now = Math.min(view.to, Math.max(view.from, timeAt(chart, event)));
    const x = (time) => chart.left + (chart.width * (time - view.from)) / (view.to - view.from);
    chart.span.setAttribute("x", Math.min(x(at), x(now)));
    chart.span.setAttribute("width", Math.abs(x(now) - x(at)));
    chart.span.setAttribute("visibility", "visible");
  }

  function onUp() {
    if (!drag) return;
    const { chart, at } = drag;
    const width = Number(chart.span.getAttribute("width"));
    const from = view.from + ((Number(chart.span.getAttribute("x")) - chart.left) / chart.width) * (view.to - view.from);
    drag = null;
    if (chart.span.getAttribute("visibility") === "visible" && width > 4) {
      show(from, from + (width / chart.width) * (view.to - view.from));
    }
    forget(chart);
  }

  function forget(chart) {
    chart.span.setAttribute("visibility", "hidden");
    chart.span.setAttribute("width", 0);
  }

  function onKey(event) {
    const actions = {
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => show(0, 1),
      ArrowLeft: () => pan(-0.2),
      ArrowRight: () => pan(0.2),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  for (const chart of charts) {
    chart.svg.addEventListener("wheel", (event) => onWheel(chart, event), { passive: false });
    chart.svg.addEventListener("pointerdown", (event) => onDown(chart, event));
    chart.svg.addEventListener("dblclick", () => show(0, 1));
    chart.svg.addEventListener("keydown", onKey);
  }
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", onUp);
  window.addEventListener("pointercancel", () => {
    if (drag) forget(drag.chart);
    drag = null;
  });

  const onClick = (id, action) => document.getElementById(id)?.addEventListener("click", action);
  onClick("zoom-in", () => zoom(0.5));
  onClick("zoom-out", () => zoom(2));
  onClick("zoom-reset", () => show(0, 1));
  onClick("pan-left", () => pan(-0.4));
  onClick("pan-right", () => pan(0.4));

  // --- the critical path ---

  onClick("mark-critical", (event) => {
    const marked = document.getElementById("gantt").classList.toggle("mark-critical");
    event.currentTarget.setAttribute("aria-pressed", marked);
  });

  function goTo(row) {
    const from = Number(row.dataset.from);
    const to = Number(row.dataset.to);
    const room = Math.max(0.25 * (to - from), 0.002);
    show(from - room, to + room);
    document.getElementById("timeline").scrollIntoView({ block: "start" });
  }
  for (const row of document.querySelectorAll("#critical-links tbody tr")) {
    row.addEventListener("click", () => goTo(row));
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") goTo(row);
    });
  }

  // --- what is under the pointer ---

  const tip = document.getElementById("tip");
  const tips = new WeakMap();
  for (const title of document.querySelectorAll("svg title")) {  // the browser would show titles, too
    tips.set(title.parentNode, title.textContent);
    title.remove();
  }

  document.addEventListener("pointermove", (event) => {
    const text = tips.get(event.target) ?? event.target.tipAt?.(event);  // a part may know better than its title
    tip.hidden = !text || drag !== null;
    if (tip.hidden) return;
    if (tip.textContent !== text) tip.textContent = text;
    const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 16;
    const fits = below + tip.offsetHeight < window.innerHeight - 8;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${Math.max(8, fits ? below : event.clientY - tip.offsetHeight - 12)}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });

  // --- the cell of a grid under the pointer ---

  for (const grid of document.querySelectorAll(".grid")) {
    const [rows, columns, units] = ["rows", "columns", "units"].map((name) => JSON.parse(grid.dataset[name]));
    const values = grid.dataset.values.split(";").map((row) => row.split(","));
    const clamp = (share, count) => Math.max(0, Math.min(count - 1, Math.floor(share * count)));
    grid.tipAt = (event) => {
      const box = grid.getBoundingClientRect();
      const row = clamp((event.clientY - box.top) / box.height, rows.length);
      const column = clamp((event.clientX - box.left) / box.width, columns.length);
      const [whole, part] = values[row][column].split(".");
      const number = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (part ? `.${part}` : "");
      return `${rows[row]} · ${columns[column]}\n${number} ${units[row] ?? units[0]}`;
    };
  }

  document.documentElement.dataset.from = "0.000000";
  document.documentElement.dataset.to = "1.000000";
  document.documentElement.dataset.ready = "1";
})();
)js";

[[nodiscard]] std::string fact(std::string_view value, std::string_view about, std::string_view id, bool alarm = false);

[[nodiscard]] std::string percent(double share);

[[nodiscard]] inline std::string at_most(double gap) { return (gap >= 5e-5 ? "≤ " : "") + percent(readable_gap(gap)); }

[[nodiscard]] std::string page(std::string_view title, std::string_view body);

[[nodiscard]] std::string section(std::string_view id, std::string_view title, std::string_view about, std::string_view content);

[[nodiscard]] inline std::string note(std::string_view text) { return "<p class=\"note\">" + std::string(text) + "</p>\n"; }

[[nodiscard]] inline std::string swatch(std::string_view fill, std::string_view kind = {}) {
  return "<i class=\"swatch" + std::string(kind) + "\" style=\"background-color:" + std::string(fill) + "\"></i>";
}

/// Returns buttons that zoom all charts over time.
/// @param whole  name of everything that a chart shows: "run".
[[nodiscard]] std::string zoom_tools(const std::string& whole, std::string_view more_buttons = {}, std::string_view more_words = {});

[[nodiscard]] inline std::string scrolling(std::string chart) { return "<div class=\"chart\">" + std::move(chart) + "</div>\n"; }

[[nodiscard]] std::string cell(std::string_view text, std::string_view more = "");

/// Returns a bar for a share of a whole, crimson if `alarm`, with the share as text.
[[nodiscard]] std::string meter(double share, bool alarm, std::string_view text);

/// A chart over time, with names on the left and numbers on the right. The script stretches the `plot` parts of all charts of a page
/// together, but not the `still` parts.
class time_chart {
 public:
  static constexpr double width = 1180, left = 172, numbers = 132;

  explicit time_chart(double latency_s, time_labels labels = time_labels::seconds);

  svg_writer plot, still;

  [[nodiscard]] const time_axis& axis() const { return axis_; }

  void name(std::string_view name, std::string_view below, double top, double height);
  /// Labels a level of the vertical axis, at the right edge of the column of names.
  void level(std::string_view text, double y) { still.text(left - 6, y, text, {.size = 9.5, .fill = palette::quiet, .anchor = "end"}); }
  void number(std::string_view text, double baseline, color fill = palette::ink);

  /// @param top, bottom  edges of the rows; the time axis is below them.
  /// @param definitions  patterns used by the rows.
  [[nodiscard]] std::string finish(std::string_view id, std::string_view label, double top, double bottom,
                                   std::string_view definitions = {}) &&;

 private:
  time_axis axis_;
  time_labels labels_;
};

/// Number of colour depths; depth 0 is paper. Depths are opacities, so that they are as strong on dark paper as on white.
inline constexpr std::size_t heat_depths = 8;

/// Returns the depth of a value, by its square root, so that small values differ visibly from 0.
[[nodiscard]] std::size_t heat_depth(double value, double most);

/// A heat map: the larger a number, the deeper its colour. Each depth is a single path, for any number of cells.
struct heat_grid {
  double left = 0, top = 0, width = 0, height = 0;
  std::vector<std::vector<double>> values = {};      ///< rows x columns, >= 0; infinity is shown as ∞
  std::vector<double> most = {};                     ///< value of the deepest colour per row, or one for all rows
  std::vector<std::string> rows = {}, columns = {};  ///< names in hover texts
  std::vector<std::string> units = {};               ///< unit per row, or one for all rows
  std::string_view kind = "load";                    ///< load: blue; queue: orange
  std::string_view id = {};
  std::vector<std::vector<std::size_t>> depths = {};  ///< depth of each cell; empty: heat_depth of its value

  [[nodiscard]] double row_height() const { return height / static_cast<double>(values.size()); }
  [[nodiscard]] double column_width() const { return width / static_cast<double>(columns.size()); }
  [[nodiscard]] double most_of(std::size_t row) const { return most.size() == 1 ? most.front() : most[row]; }
  [[nodiscard]] std::size_t depth(std::size_t row, std::size_t column) const {
    return depths.empty() ? heat_depth(values[row][column], most_of(row)) : depths[row][column];
  }
};

/// Paints the cells, their numbers if there is room, and the names and numbers of all cells for the script.
void paint(svg_writer& out, const heat_grid& g);

/// Legend of a heat map: "0 ▯▯▯▯▯▯▯▯ 45 requests waiting".
[[nodiscard]] std::string heat_legend(std::string_view kind, std::string_view least, std::string_view most);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/page.ipp>
#endif
