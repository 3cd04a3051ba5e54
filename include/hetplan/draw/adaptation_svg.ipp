// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_svg.hpp>

#include <array>
#include <utility>

#include <hetplan/draw/adaptation_rows.hpp>
#include <hetplan/draw/ticks.hpp>

namespace hetplan::draw {

namespace detail {

/// What the fills of a policy's strip mean.
[[nodiscard]] HETPLAN_INLINE std::array<std::pair<std::string, std::string_view>, 4> strip_keys() {
  return {{{"url(#hetplan-migrating)", "weights move"},
           {adaptation_colors::stalled.hex(), "nothing can run"},
           {"url(#hetplan-lost)", "work cut off and lost"},
           {adaptation_colors::idle.hex(), "rests on purpose"}}};
}

HETPLAN_INLINE std::string adaptation_title(std::span<const io::policy_history> policies, const adapt::timeline& t, std::string_view model,
                                            const cluster& c) {
  return std::string(model) + " on " + c.name() + ": " + std::to_string(policies.size()) +
         (policies.size() == 1 ? " policy" : " policies") + " over " + clock_text(t.duration.value());
}

}  // namespace detail

HETPLAN_INLINE std::string adaptation_svg(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                          const planning_graph& model, const cluster& c, const qoe_target& wanted) {
  const detail::adaptation_view view(policies, t, c, wanted);
  std::size_t steps = t.events.size();
  for (const io::policy_history& row : policies) steps += row.history.stretches.size();
  const bool coarse = steps > 1500;
  detail::adaptation_canvas canvas(view, c, {.bins_per_pixel = coarse ? 0.5 : 1, .cells = coarse ? 24U : 40U, .signs = 40});
  const double bottom = detail::adaptation_rows(canvas).paint();
  constexpr double margin = 24, top = 106;
  svg_writer all;
  all.raw(detail::hatch_patterns());
  const std::string title = detail::adaptation_title(policies, t, model.name(), c);
  all.text(margin, 34, title, {.size = 18, .weight = 600});
  double x = margin, y = 62;
  const auto meaning = [&](std::string_view text) {
    all.text(x, y, text, {.size = 11.5, .fill = palette::quiet});
    x += svg_writer::prose_width(text, 11.5) + 14;
  };
  const auto swatch = [&](std::string_view fill, double height) {
    all.rect(x, y - 4 - height / 2, 16, height, fill);
    x += 21;
  };
  for (std::size_t i = 0; i < 2; ++i) swatch(detail::adaptation_colors::layout(i).hex(), 12);
  meaning("a plan runs; its letter says who computes what");
  for (const auto& [fill, text] : detail::strip_keys()) {
    swatch(fill, 12);
    meaning(text);
  }
  x = margin;
  y += 21;
  swatch(detail::adaptation_colors::on_time.hex(), 3);
  meaning("response as wanted");
  swatch(detail::adaptation_colors::late.hex(), 3);
  meaning("late");
  for (const auto& [s, text] : {std::pair{detail::sign::network, "new order on the network"},
                                {detail::sign::known_plan, "a plan that was known"},
                                {detail::sign::replanned, "a new plan"}}) {
    all.path("M" + fixed(x + 7) + " " + fixed(y - 4) + std::string(detail::shape_of(s)), detail::color_of(s).hex());
    x += 19;
    meaning(text);
  }
  all.open_group(" transform=\"translate(" + fixed(margin) + " " + fixed(top) + ")\"");
  detail::paint_time_axis(all, canvas.chart.axis(), detail::clock_ticks(canvas.chart.axis()), 0, bottom);
  all.append(std::move(canvas.chart.plot));
  all.append(std::move(canvas.chart.still));
  all.close_group();
  return std::move(all).document(detail::time_chart::width + 2 * margin, top + bottom + 34, title);
}

}  // namespace hetplan::draw
