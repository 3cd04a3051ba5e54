// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_report.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/zip.hpp>

#include <hetplan/draw/adaptation_chart.hpp>
#include <hetplan/draw/page.hpp>

namespace hetplan::draw {

namespace detail {

/// Fills of a policy's strip with their meanings.
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
  const double bottom = detail::paint_rows(canvas);
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
  detail::paint_time_axis(all, {canvas.chart.axis(), detail::time_labels::clock}, 0, bottom);
  all.append(std::move(canvas.chart.plot));
  all.append(std::move(canvas.chart.still));
  all.close_group();
  return std::move(all).document(detail::time_chart::width + 2 * margin, top + bottom + 34, title);
}

}  // namespace hetplan::draw

namespace hetplan::draw::detail {

/// A column of the comparison, and whether less or more is better.
struct policy_column {
  enum class better { less, more, neither };
  std::string_view title, about;
  better best;
  std::function<double(const adapt::history&)> value;  ///< not finite: nothing to compare
  std::function<std::string(double)> text;
};

[[nodiscard]] HETPLAN_INLINE std::vector<policy_column> policy_columns(const adaptation_view& view, const job& j) {
  using better = policy_column::better;
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  const auto count = [](double v) { return grouped(static_cast<long long>(v)); };
  const auto joules = [](double v) { return engineering(v, "J"); };
  const auto& all = view.policies;
  const bool same_work =
      std::all_of(all.begin(), all.end(), [&](const auto& p) { return p.history.iterations == all.front().history.iterations; });
  const double duration = view.duration_s, batch = j.batch;
  const bool ends = std::any_of(all.begin(), all.end(), [](const auto& p) { return p.history.finished_s || p.history.missed_deadline; });
  std::vector<policy_column> columns{
      {"Iterations", "done and kept", better::more, [](const auto& h) { return static_cast<double>(h.iterations); }, count},
      {"Throughput", "samples per second until the job is done, or the timeline", better::more,
       [=](const auto& h) { return static_cast<double>(h.iterations) * batch / h.finished_s.value_or(duration); },
       [](double v) {
         return fixed(v, v < 10 ? 2 : v < 100 ? 1 : 0) + "/s";
       }},
      {"Late", "share of iterations whose response was above what was wanted", better::less,
       [=](const auto& h) { return h.iterations > 0 ? static_cast<double>(h.violations) / static_cast<double>(h.iterations) : none; },
       [](double v) { return fixed(100 * v, v < 0.1 ? 1 : 0) + " %"; }},
      {"Halted", "weights moved, or no plan could run", better::less, [](const auto& h) { return h.stall_s; }, clock_text},
      {"Energy", "of all devices", same_work ? better::less : better::neither, [](const auto& h) { return h.energy_J; }, joules},
      {"per iteration", "energy for each iteration that was kept", better::less,
       [=](const auto& h) { return h.iterations > 0 ? h.energy_J / static_cast<double>(h.iterations) : none; }, joules},
      {"Switches", "adoptions that moved something or changed who computes what", better::neither,
       [](const auto& h) { return static_cast<double>(h.switches); }, count},
      {"Moved", "weights, state and caches", better::neither, [](const auto& h) { return h.moved_bytes; },
       [](double v) { return engineering(v, "B"); }},
      {"Slowest reaction", "from an event to the plan that answers it", better::less,
       [=](const auto& h) { return h.adoptions.empty() ? none : h.reaction_s; }, clock_text}};
  if (ends) {
    columns.push_back({"Job done", "when all iterations of the job were done", better::less,
                       [=](const auto& h) { return h.finished_s.value_or(none); }, clock_text});
  }
  return columns;
}

/// Returns a table with a row per policy. The best value of a column is bold if the values differ.
[[nodiscard]] HETPLAN_INLINE std::string policy_table(const adaptation_view& view, const job& j) {
  const std::vector<policy_column> columns = policy_columns(view, j);
  std::string text = "<table id=\"policies-table\">\n<thead><tr><th>Policy</th>";
  for (const policy_column& c : columns) text += "<th class=\"n\" title=\"" + xml_text(c.about) + "\">" + std::string(c.title) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  std::vector<std::pair<double, double>> range(columns.size(), {INFINITY, -INFINITY});
  for (auto&& [column, r] : ranges::views::zip(columns, range)) {
    for (const io::policy_history& p : view.policies) {
      const double v = column.value(p.history);
      if (std::isfinite(v)) r = {std::min(r.first, v), std::max(r.second, v)};
    }
  }
  for (const io::policy_history& p : view.policies) {
    std::string note;
    if (!p.history.status.ok()) note = std::string(to_string(p.history.status.result)) + ": " + p.history.status.reason;
    if (p.history.missed_deadline) note += (note.empty() ? "" : "; ") + std::string("missed the deadline");
    text += "<tr><td>" + xml_text(p.policy) + (note.empty() ? "" : "<br><span class=\"alarm\">" + xml_text(note) + "</span>") + "</td>";
    for (const auto& [column, r] : ranges::views::zip(columns, range)) {
      const double v = column.value(p.history), best = column.best == policy_column::better::less ? r.first : r.second;
      const bool marked = column.best != policy_column::better::neither && v == best && r.first < r.second;
      const std::string shown = xml_text(std::isfinite(v) ? column.text(v) : std::string("–"));
      text += "<td class=\"n\">" + (marked ? "<b title=\"best\">★ " + shown + "</b>" : shown) + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string adoption_row(const adaptation_view& view, std::size_t p, const adapt::adoption& a) {
  constexpr std::string_view whole = " style=\"white-space:nowrap\"";
  const auto or_none = [](double v, const std::string& shown) { return v > 0 ? shown : std::string(); };
  return "<tr>" + cell(clock_text(a.caused_s), " class=\"n\"") + cell(clock_text(a.decided_s - a.caused_s), " class=\"n\"") +
         cell(clock_text(a.done_s - a.caused_s), " class=\"n\"") + cell(to_string(a.reached), whole) +
         cell(view.name(p, a.from) + " → " + view.name(p, a.to), whole) + cell(a.reason) +
         cell(or_none(a.stall_s, clock_text(a.stall_s)), " class=\"n\"") +
         cell(or_none(a.moved_bytes, engineering(a.moved_bytes, "B")), " class=\"n\"") +
         cell(or_none(a.moved_J, engineering(a.moved_J, "J")), " class=\"n\"") + "</tr>\n";
}

/// Returns a policy's adoptions in order: the first few visible, more folded, the rest counted.
[[nodiscard]] HETPLAN_INLINE std::string adoption_list(const adaptation_view& view, std::size_t p) {
  constexpr std::size_t open = 10, most = 500;
  const auto& all = view.policies[p].history.adoptions;
  std::string text = "<h3>" + xml_text(view.policies[p].policy) + "</h3>\n";
  if (all.empty()) return text + note("Keeps its first plan.");
  const auto table = [&](std::size_t from, std::size_t to) {
    std::string rows =
        "<div class=\"scroll\"><table class=\"adoptions\"><thead><tr><th class=\"n\">Event at</th><th class=\"n\">Decided after</th>"
        "<th class=\"n\">In force after</th><th>Step</th><th>Plan</th><th>Reason</th><th class=\"n\">Halted</th>"
        "<th class=\"n\">Moved</th><th class=\"n\">Energy</th></tr></thead>\n<tbody>\n";
    for (std::size_t i = from; i < to; ++i) rows += adoption_row(view, p, all[i]);
    return rows + "</tbody></table></div>\n";
  };
  text += table(0, std::min(open, all.size()));
  if (all.size() > open) {
    const std::size_t end = std::min(most, all.size());
    text += "<details><summary>" + grouped(end - open) + " more</summary>\n" + table(open, end) + "</details>\n";
  }
  if (all.size() > most) text += note(grouped(all.size() - most) + " later ones are left out of the page.");
  return text;
}

/// Returns the stages of a plan as text: "2 stages: block0 … block2 on laptop0; ...".
[[nodiscard]] HETPLAN_INLINE std::string stages_of(const plan& p, const planning_graph& model, const cluster& c) {
  std::string text;
  for (const stage& s : p.stages) {
    if (!text.empty()) text += "; ";
    if (!s.layers.empty()) text += fitted(model[s.layers.front()].name, 24);
    if (s.layers.size() > 1) text += " … " + fitted(model[s.layers.back()].name, 24);
    text += " on ";
    for (const assignment& a : s.devices) {
      text += (&a == &s.devices.front() ? "" : " + ") + c[a.device].name;
      if (s.devices.size() > 1) text += " (" + std::to_string(a.samples) + ")";
    }
  }
  return text;
}

/// Returns a table of the plans that ran, by name, with the time under each policy.
[[nodiscard]] HETPLAN_INLINE std::string plans_table(const adaptation_view& view, const planning_graph& model, const cluster& c) {
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::size_t, double>> ran_s;  // by name, then by policy
  for (std::size_t p = 0; p < view.policies.size(); ++p) {
    for (const adapt::stretch& s : view.policies[p].history.stretches) {
      if (s.what != adapt::activity::running || s.plan >= view.names[p].size()) continue;
      const plan_name& n = view.names[p][s.plan];
      ran_s[{n.layout, n.variant}][p] += s.end_s - s.start_s;
    }
  }
  constexpr std::size_t most = 60;
  std::size_t rows = 0, hidden = 0;
  std::string text =
      "<div class=\"scroll\"><table id=\"plans-table\"><thead><tr><th>Plan</th><th>Stages</th><th "
      "class=\"n\">Microbatches</th><th>Schedule, "
      "network</th><th class=\"n\">Predicted</th><th>Ran under</th></tr></thead>\n<tbody>\n";
  for (const auto& [l, variants] : ranges::views::enumerate(view.layouts)) {
    for (const auto& [v, made] : ranges::views::enumerate(variants)) {
      if (++rows > most) {
        ++hidden;
        continue;
      }
      const plan& p = *made.plan;
      std::string who;
      for (const auto& [policy, s] : ran_s[{l, v}]) who += (who.empty() ? "" : ", ") + view.policies[policy].policy + " " + clock_text(s);
      std::string network = std::string(to_string(p.schedule.kind)) + ", " + std::string(to_string(p.sharing_policy));
      if (!p.schedule.transfers.empty()) network += ", " + std::to_string(p.schedule.transfers.size()) + " rules";
      std::string predicted;
      if (const evaluation* e = made.predicted)
        predicted = engineering(e->latency.value(), "s") + ", " + engineering(e->energy().value(), "J");
      text += "<tr><td style=\"white-space:nowrap\">" + swatch(palette::category_color(l).hex()) + "<b>" + plan_name{l, v}.text() +
              "</b></td>" + cell(v == 0 ? stages_of(p, model, c) : "as " + plan_name{l, 0}.text() + ", transfers in another order") +
              cell(std::to_string(p.microbatches) + " of " + std::to_string(p.microbatch_size), " class=\"n\"") + cell(network) +
              cell(predicted, " class=\"n\"") + cell(who.empty() ? "never ran to an end" : who) + "</tr>\n";
    }
  }
  text += "</tbody></table></div>\n";
  if (hidden > 0) text += note(grouped(hidden) + " more plans are left out of the page.");
  return text;
}

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string adaptation_header(std::string_view title, const adapt::timeline& t, const cluster& c,
                                                           const job& j) {
  std::string text = "<header id=\"summary\">\n<h1>" + xml_text(title) + "</h1>\n<p class=\"quiet\">" +
                     std::string(to_string(j.workload.mode)) + " · batch " + std::to_string(j.batch) + " · " + std::to_string(c.size()) +
                     (c.size() == 1 ? " device" : " devices") + " · " + grouped(t.events.size()) +
                     (t.events.size() == 1 ? " event" : " events");
  if (j.qoe.latency) text += " · wanted: a response within " + engineering(j.qoe.latency->value(), "s");
  if (j.qoe.deadline) text += " · deadline " + clock_text(j.qoe.deadline->value());
  if (j.qoe.iterations) text += " · job of " + grouped(*j.qoe.iterations) + " iterations";
  return text +
         "</p>\n<nav><a href=\"#policies\">policies</a><a href=\"#timeline\">timeline</a><a href=\"#adoptions\">adoptions</a><a "
         "href=\"#plans\">plans</a></nav>\n</header>\n";
}

[[nodiscard]] HETPLAN_INLINE std::string adaptation_chart(adaptation_canvas& k) {
  const double bottom = paint_rows(k);
  return std::move(k.chart).finish("adaptation", "Conditions and policies over time", 0, bottom, hatch_patterns());
}

[[nodiscard]] HETPLAN_INLINE std::string adaptation_legend() {
  using colors = adaptation_colors;
  const auto glyph = [](sign s) {
    return "<svg viewBox=\"-7 -7 14 14\" width=\"13\" height=\"13\" "
           "style=\"display:inline-block;width:13px;min-width:13px;vertical-align:-2px;"
           "margin-right:6px\" aria-hidden=\"true\"><path d=\"M0 0" +
           std::string(shape_of(s)) + "\" fill=\"" + color_of(s).hex() + "\"/></svg>";
  };
  return "<div class=\"legend\"><span>" + swatch(colors::layout(0).hex()) + swatch(colors::layout(1).hex()) +
         "a plan runs; its letter says who computes what</span><span>" + swatch(colors::migrating.hex(), " hatched") +
         "weights move</span><span>" + swatch(colors::stalled.hex()) + "nothing can run</span><span>" +
         swatch(colors::cut_off.hex(), " hatched") + "work cut off and lost</span><span>" + swatch(colors::idle.hex()) +
         "rests on purpose</span><span>" + swatch(colors::on_time.hex(), " line") + "response as wanted</span><span>" +
         swatch(colors::late.hex(), " line") + "late</span><span>" + glyph(sign::network) + "new order on the network</span><span>" +
         glyph(sign::known_plan) + "a plan that was known</span><span>" + glyph(sign::replanned) + "a new plan</span></div>\n";
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
      detail::adaptation_legend() + detail::zoom_tools("timeline") + detail::scrolling(detail::adaptation_chart(canvas)));
  std::string adoptions;
  for (std::size_t p = 0; p < policies.size(); ++p) adoptions += detail::adoption_list(view, p);
  body += detail::section("adoptions", "Adoptions", "Which plan was adopted when, how far up the ladder the reaction went, and why.",
                          adoptions);
  body +=
      detail::section("plans", "Plans",
                      "Every plan that a policy held. One letter, one way to share the computing; a number behind it, another order of its "
                      "transfers. Numbers after devices are samples of a microbatch.",
                      detail::plans_table(view, model, c));
  return detail::page(title, body);
}

}  // namespace hetplan::draw
