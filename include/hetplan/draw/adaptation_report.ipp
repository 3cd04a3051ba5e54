// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_report.hpp>

#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/adaptation_canvas.hpp>
#include <hetplan/draw/adaptation_rows.hpp>
#include <hetplan/draw/adaptation_svg.hpp>
#include <hetplan/draw/adaptation_tables.hpp>
#include <hetplan/draw/clock_script.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_time_chart.hpp>
#include <hetplan/draw/ticks.hpp>

namespace HETPLAN_NAMESPACE::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string adaptation_header(std::string_view title, const adapt::timeline& t, const cluster& c,
                                                           const job& j) {
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(title) + "</h1>\n<p class=\"quiet\">" +
                     std::string(to_string(j.workload.mode)) + " · batch " + std::to_string(j.batch) + " · " + std::to_string(c.size()) +
                     (c.size() == 1 ? " device" : " devices") + " · " + grouped(static_cast<long long>(t.events.size())) +
                     (t.events.size() == 1 ? " event" : " events");
  if (j.qoe.latency) text += " · wanted: a response within " + engineering(j.qoe.latency->value(), "s");
  if (j.qoe.deadline) text += " · deadline " + clock_text(j.qoe.deadline->value());
  if (j.qoe.iterations) text += " · job of " + grouped(*j.qoe.iterations) + " iterations";
  return text +
         "</p>\n<nav><a href=\"#policies\">policies</a><a href=\"#timeline\">timeline</a><a href=\"#adoptions\">adoptions</a><a "
         "href=\"#plans\">plans</a></nav>\n</header>\n";
}

/// The chart, ready for the report's script.
[[nodiscard]] HETPLAN_INLINE std::string adaptation_chart(adaptation_canvas& k) {
  const double bottom = adaptation_rows(k).paint();
  const std::vector<tick> ticks = clock_ticks(k.chart.axis());
  return std::move(k.chart).finish("adaptation", "Conditions and policies over time", 0, bottom, ticks, hatch_patterns());
}

[[nodiscard]] HETPLAN_INLINE std::string adaptation_legend() {
  using colors = adaptation_colors;
  const auto swatch = [](std::string_view kind, color c) {
    return "<i class=\"swatch" + std::string(kind) + "\" style=\"background-color:" + c.hex() + "\"></i>";
  };
  const auto glyph = [](sign s) {
    return "<svg viewBox=\"-7 -7 14 14\" width=\"13\" height=\"13\" "
           "style=\"display:inline-block;width:13px;min-width:13px;vertical-align:-2px;"
           "margin-right:6px\" aria-hidden=\"true\"><path d=\"M0 0" +
           std::string(shape_of(s)) + "\" fill=\"" + color_of(s).hex() + "\"/></svg>";
  };
  return "<div class=\"legend\"><span>" + swatch("", colors::layout(0)) + swatch("", colors::layout(1)) +
         "a plan runs; its letter says who computes what</span><span>" + swatch(" hatched", colors::migrating) +
         "weights move</span><span>" + swatch("", colors::stalled) + "nothing can run</span><span>" + swatch(" hatched", colors::cut_off) +
         "work cut off and lost</span><span>" + swatch("", colors::idle) + "rests on purpose</span><span>" +
         swatch(" line", colors::on_time) + "response as wanted</span><span>" + swatch(" line", colors::late) + "late</span><span>" +
         glyph(sign::network) + "new order on the network</span><span>" + glyph(sign::known_plan) + "a plan that was known</span><span>" +
         glyph(sign::replanned) + "a new plan</span></div>\n";
}

}  // namespace detail

HETPLAN_INLINE std::string adaptation_report_html(std::span<const io::policy_history> policies, const adapt::timeline& t,
                                                  const planning_graph& model, const cluster& c, const job& j) {
  const detail::adaptation_view view(policies, t, c, j.qoe);
  detail::adaptation_canvas canvas(view, c, {.bins_per_pixel = 2, .cells = 200, .signs = 200, .zooms = true});
  const std::string title = detail::adaptation_title(policies, t, model.name(), c);
  std::string body = detail::adaptation_header(title, t, c, j);
  body += detail::section(
      "policies", "Policies",
      "Each policy lived through the same timeline. ★ marks the best of a column; effort (switches, bytes "
      "moved) has no best, and total energy only where all did the same work. Iterations whose weights were lost do not count.",
      detail::policy_table(view, j));
  body += detail::section(
      "timeline", "Timeline",
      "Read it from the top: the upper rows say what changed, and a faint line leads from each change down to what the policies made of "
      "it. "
      "A policy's strip says what ran; a sign above it is an adoption, with a bar back to the event that caused it. The curve below is the "
      "response: under the dashed line is what the user wanted. With many changes, pale is the range and the line in it the mean.",
      detail::adaptation_legend() +
          "<div class=\"tools\"><button id=\"zoom-in\" type=\"button\">Zoom in</button><button id=\"zoom-out\" type=\"button\">Zoom "
          "out</button>"
          "<button id=\"pan-left\" type=\"button\" aria-label=\"earlier\">◀</button><button id=\"pan-right\" type=\"button\" "
          "aria-label=\"later\">▶</button><button id=\"zoom-reset\" type=\"button\">Whole timeline</button><span class=\"note\">Drag to "
          "zoom to "
          "a span, Ctrl + wheel to zoom, Shift + wheel to move; double-click for the whole timeline.</span></div>\n" +
          detail::scrolling(detail::adaptation_chart(canvas)));
  std::string adoptions;
  for (std::size_t p = 0; p < policies.size(); ++p) adoptions += detail::adoption_list(view, p);
  body += detail::section("adoptions", "Adoptions", "Which plan was adopted when, how far up the ladder the reaction went, and why.",
                          adoptions);
  body +=
      detail::section("plans", "Plans",
                      "Every plan that a policy held. One letter, one way to share the computing; a number behind it, another order of its "
                      "transfers. Numbers after devices are samples of a microbatch.",
                      detail::plans_table(view, model, c));
  body += "<script>" + std::string(detail::clock_script) + "</script>\n";
  return detail::page(title, body);
}

}  // namespace HETPLAN_NAMESPACE::draw
