// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every page is made of: its frame with style and script, sections, facts.

#include <string>
#include <string_view>
#include <utility>

#include <hetplan/core/linkage.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::draw::detail {

// What the report does by itself: zooms its charts together, shows what is under the pointer, marks the critical path.

/// Plain JavaScript without libraries, network or eval. Says data-ready="1" on the page when it has started, and
/// data-error where something went wrong. Without it the page is whole, but does not zoom.
inline constexpr std::string_view report_script = R"js(
"use strict";
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message || "error";
});

(() => {
  const SMALLEST_SPAN = 1 / 100;  // of the run: the largest zoom
  const charts = [...document.querySelectorAll("svg.over-time")].map((svg) => ({
    svg,
    left: Number(svg.dataset.left),
    width: Number(svg.dataset.width),
    seconds: Number(svg.dataset.seconds),
    plot: svg.querySelector(".plot"),
    ticks: svg.querySelector(".ticks"),
    span: svg.querySelector(".span"),
    labels: [...svg.querySelectorAll("text[data-show]")],
  }));
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

  /// Every 1, 2 or 5 times a power of ten, as when the page was made.
  function drawTicks(chart) {
    const span = chart.seconds * (view.to - view.from);
    const [unit, name] = span >= 1 ? [1, "s"] : span >= 1e-3 ? [1e-3, "ms"] : span >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
    const rough = span / unit / Math.max(2, Math.floor(chart.width / 90));
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((factor) => rough / power <= factor) || 10);
    const first = Math.ceil((chart.seconds * view.from) / unit / step - 1e-9);
    const last = Math.floor((chart.seconds * view.to) / unit / step + 1e-9);
    const line = chart.ticks.querySelector("line").cloneNode();
    const text = chart.ticks.querySelector("text").cloneNode();
    const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    chart.ticks.replaceChildren();
    for (let i = first; i <= last && i < first + 100; ++i) {
      const x = chart.left + (chart.width * ((i * step * unit) / chart.seconds - view.from)) / (view.to - view.from);
      const tick = line.cloneNode();
      tick.setAttribute("x1", x);
      tick.setAttribute("x2", x);
      const label = text.cloneNode();
      label.setAttribute("x", x);
      label.textContent = `${Number((i * step).toFixed(decimals))} ${name}`;
      chart.ticks.append(tick, label);
    }
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
  for (const title of document.querySelectorAll("svg title")) {  // or the browser would show them, too
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

[[nodiscard]] inline std::string scrolling(std::string chart) { return "<div class=\"chart\">" + std::move(chart) + "</div>\n"; }

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/page.ipp>
#endif
