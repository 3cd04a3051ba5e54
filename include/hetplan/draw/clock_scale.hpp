// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How charts over minutes and hours put time on paper, and values that change more often than there are pixels.

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>
#include <hetplan/draw/gantt_rows.hpp>

namespace hetplan::draw::detail {

// What pages over minutes and hours do beside the report's script: they write the axes of time as on a clock.

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

/// A value that holds for a while.
struct level {
  double from_s, to_s, value;
};

/// Levels as a line to stroke: a step where one follows another at once, a gap where not.
[[nodiscard]] std::string step_line(const std::vector<level>& levels, const time_axis& axis, row_box box, double full);
/// The same as an area above the bottom of the row.
[[nodiscard]] std::string step_area(const std::vector<level>& levels, const time_axis& axis, row_box box, double full);

/// "42.5 s", "12 min 5 s", "3 h 20 min".
[[nodiscard]] std::string clock_text(double s);

/// Digits in groups of three: 86 400. The space is a narrow one that does not break.
[[nodiscard]] std::string grouped(long long n);

/// A number for a small place: "0.25", "1 240", "124 k".
[[nodiscard]] std::string short_number(double v);

/// The least, the most and the mean of a value in each of many equal parts of the time: one outline however often it changed.
class value_band {
 public:
  value_band(const time_axis& axis, std::size_t bins);

  void add(double start_s, double end_s, double value);
  /// How long something was added to a part [s].
  [[nodiscard]] double weight(std::size_t b) const { return weight_[b]; }
  /// The means of those parts that `which` picks.
  template <class Which>
  [[nodiscard]] std::vector<level> means(Which&& which) const {
    std::vector<level> all;
    const auto edge = [&](std::size_t b) { return axis_.latency_s * static_cast<double>(b) / bins(); };
    for (std::size_t b = 0; b < most_.size(); ++b) {
      if (weight_[b] > 0 && which(b)) all.push_back({edge(b), edge(b + 1), sum_[b] / weight_[b]});
    }
    return all;
  }
  [[nodiscard]] std::size_t first_bin(double t) const;
  [[nodiscard]] std::size_t last_bin(double start_s, double end_s) const;

  /// From least to most. Parts that touch are joined.
  [[nodiscard]] std::string range(row_box box, double full) const;
  /// From the bottom of the row to the most.
  [[nodiscard]] std::string area(row_box box, double full) const;

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();
  [[nodiscard]] double bins() const { return static_cast<double>(most_.size()); }
  [[nodiscard]] bool has(std::size_t b) const { return most_[b] >= least_[b]; }

  /// Relative steps between rounded places: short, and the errors do not add up.
  class pen {
   public:
    void move(double x, double y) { d_ += "M" + fixed(x_ = round(x)) + " " + fixed(y_ = round(y)); }
    void across(double x) { d_ += step("h", x_, round(x)); }
    void up_or_down(double y) { d_ += step("v", y_, round(y)); }
    void close() { d_ += "Z"; }
    [[nodiscard]] std::string text() && { return std::move(d_); }

   private:
    [[nodiscard]] static double round(double v) { return std::round(v * 10) / 10; }
    [[nodiscard]] static std::string step(const char* letter, double& from, double to);
    std::string d_;
    double x_ = 0, y_ = 0;
  };

  [[nodiscard]] std::string outline(const std::vector<double>& top, const std::vector<double>& bottom) const;

  time_axis axis_;
  std::vector<double> least_, most_, sum_, weight_;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/clock_scale.ipp>
#endif
