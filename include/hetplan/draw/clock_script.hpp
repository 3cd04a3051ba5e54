// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What pages over minutes and hours do beside the report's script: they write the axes of time as on a clock.

#include <string_view>

#include <hetplan/core/linkage.hpp>

namespace hetplan::draw::detail {

/// The report's script zooms and writes seconds; this one handles the event of the view that it sets and writes hours and minutes instead.
inline constexpr std::string_view clock_script = R"js(
"use strict";
(() => {
  const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
                 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
  const root = document.documentElement;
  const charts = [...document.querySelectorAll("svg.over-time")].filter((chart) => Number(chart.dataset.seconds) >= 120);

  function label(t) {
    const hours = Math.floor(t / 3600 + 1e-9);
    const minutes = Math.floor((t - 3600 * hours) / 60 + 1e-9);
    const rest = Number((t - 3600 * hours - 60 * minutes).toFixed(2));
    const parts = [[hours, "h"], [minutes, "min"], [rest, "s"]].filter(([n]) => n > 0);
    return parts.map(([n, unit]) => `${n} ${unit}`).join(" ") || "0";
  }

  function draw(chart) {
    const seconds = Number(chart.dataset.seconds);
    const from = seconds * Number(root.dataset.from ?? 0);
    const to = seconds * Number(root.dataset.to ?? 1);
    const width = Number(chart.dataset.width);
    const most = width / 95;
    let step = STEPS.find((s) => (to - from) / s <= most) ?? STEPS.at(-1);
    while ((to - from) / step > most) step *= 2;
    const ticks = chart.querySelector(".ticks");
    const line = ticks.querySelector("line").cloneNode();
    const text = ticks.querySelector("text").cloneNode();
    ticks.replaceChildren();
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + 1e-9 * seconds; ++i) {
      const x = Number(chart.dataset.left) + (width * (i * step - from)) / (to - from);
      const tick = line.cloneNode();
      tick.setAttribute("x1", x);
      tick.setAttribute("x2", x);
      const words = text.cloneNode();
      words.setAttribute("x", x);
      words.textContent = label(i * step);
      ticks.append(tick, words);
    }
  }

  new MutationObserver(() => charts.forEach(draw)).observe(root, { attributes: true, attributeFilter: ["data-from", "data-to"] });
})();
)js";

}  // namespace hetplan::draw::detail
