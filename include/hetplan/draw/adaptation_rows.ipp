// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_rows.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/draw/adaptation_hover.hpp>
#include <hetplan/draw/adaptation_strip.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE double adaptation_rows::paint() {
  double y = paint_conditions(6);
  for (std::size_t p = 0; p < view_.policies.size(); ++p) y = paint_policy(p, y);
  const double bottom = y - 14;
  svg_writer background;
  background.raw(k_.marks(0, bottom));
  background.append(std::move(k_.chart.plot));
  k_.chart.plot = std::move(background);
  for (const double at : view_.deadlines)
    k_.chart.plot.line(k_.x(at), deadline_top_, k_.x(at), bottom, palette::ink, 1.4, " pointer-events=\"none\"");
  return bottom;
}

HETPLAN_INLINE double adaptation_rows::paint_conditions(double y) {
  const auto rate = [](double v) { return engineering(8 * v, "bit/s"); };
  const auto factor = [](double v) { return fixed(100 * v, 0) + " %"; };
  for (const changing& c : view_.resources) {
    const row_box box{y, 38};
    k_.chart.name(k_.cluster.network().resources()[c.index].name, "capacity", y, box.height);
    paint_changing(k_, c, adaptation_colors::capacity, "outage", box, rate);
    y += box.height + 12;
  }
  for (const changing& c : view_.devices) {
    const row_box box{y, 28};
    k_.chart.name(k_.cluster.devices()[c.index].name, "speed", y, box.height);
    paint_changing(k_, c, adaptation_colors::speed, "stopped", box, factor);
    y += box.height + 12;
  }
  sign_row traffic;
  for (const adapt::event& e : view_.transfers) {
    const auto& t = std::get<adapt::transfer_begins>(e.what);
    const std::string words = k_.cluster[t.from].name + " → " + k_.cluster[t.to].name + ", " + engineering(t.volume.value(), "B");
    traffic.add(sign::event, e.at.value(), words, "other traffic: " + words + "\nbegins at " + clock_text(e.at.value()));
  }
  y = paint_signs(traffic, "other traffic", y);
  sign_row targets;
  for (std::size_t i = 1; i < view_.wanted.size(); ++i) {
    const std::string response = "response " + engineering(view_.wanted[i].value, "s");
    targets.add(sign::event, view_.wanted[i].from_s, response, response + "\nwanted from " + clock_text(view_.wanted[i].from_s) + " on");
  }
  deadline_top_ = y + 11;
  for (const double at : view_.deadlines) targets.add(sign::done, at, "deadline", "deadline at " + clock_text(at));
  y = paint_signs(targets, "wanted", y);
  if (view_.hidden > 0) {
    const std::string hidden = std::to_string(view_.hidden) + (view_.hidden == 1 ? " other changes" : " others change");
    k_.chart.still.text(time_chart::left, y + 4, hidden + " less: not shown", {.size = 10.5, .fill = palette::quiet});
    y += 16;
  }
  return y + 4;
}

HETPLAN_INLINE double adaptation_rows::paint_signs(sign_row& row, std::string_view name, double y) {
  if (row.empty()) return y;
  k_.chart.name(name, {}, y, 24);
  row.paint(k_, y + 17);
  return y + 32;
}

HETPLAN_INLINE double adaptation_rows::paint_policy(std::size_t p, double y) {
  const io::policy_history& row = view_.policies[p];
  const adapt::history& h = row.history;
  const row_box strip{y + 24, 15}, panel{y + 43, 46};
  const std::size_t n = h.adoptions.size();
  const std::string adoptions = n == 0 ? "changes nothing" : grouped(static_cast<long long>(n)) + (n == 1 ? " adoption" : " adoptions");
  k_.chart.name(row.policy, adoptions, y + 10, 30);
  k_.chart.still.text(0, panel.top + panel.height / 2 + 10, "response", {.size = 10.5, .fill = palette::quiet});
  k_.track(strip);
  k_.track(panel);
  strip_painter(k_, p, strip).paint();
  paint_response(h, panel);
  explain_spans(k_, p, {strip.top, panel.top + panel.height - strip.top});
  sign_row signs;
  for (const adapt::adoption& a : h.adoptions) {
    if (a.caused_s < a.done_s && n <= k_.detail.signs) {
      const double from = k_.x(a.caused_s), to = k_.x(a.done_s);
      if (to - from > 2) k_.chart.plot.line(from, strip.top - 1.5, to, strip.top - 1.5, palette::ink, 1.6);
    }
    const std::string words = std::string(to_string(a.reached)) + " → " + view_.name(p, a.to);
    signs.add(sign_of(a.reached), a.done_s, words, explain_adoption(view_, p, a));
  }
  if (h.finished_s) signs.add(sign::done, *h.finished_s, "job done", row.policy + ": job done\n" + clock_text(*h.finished_s));
  signs.paint(k_, y + 15);
  const auto number = [&](std::string_view text, int line, color fill = palette::ink) {
    k_.chart.number(text, y + 30 + 14.5 * line, fill);
  };
  number(grouped(h.iterations) + (h.iterations == 1 ? " iteration" : " iterations"), 0);
  const double share = h.iterations > 0 ? 100 * static_cast<double>(h.violations) / static_cast<double>(h.iterations) : 0;
  if (h.violations > 0) number(grouped(h.violations) + " late (" + fixed(share, share < 10 ? 1 : 0) + " %)", 1, palette::alarm);
  else number("none late", 1, palette::quiet);
  number(h.stall_s > 0 ? "halted " + clock_text(h.stall_s) : std::string("never halted"), 2, palette::quiet);
  number(engineering(h.energy_J, "J"), 3, palette::quiet);
  if (!h.status.ok()) number(to_string(h.status.result), 4, palette::alarm);
  else if (h.missed_deadline) number("missed the deadline", 4, palette::alarm);
  return panel.top + panel.height + 22;
}

HETPLAN_INLINE double adaptation_rows::response_scale() const {
  std::vector<std::pair<double, double>> all;
  double whole = 0, wanted = 0;
  for (const io::policy_history& row : view_.policies) {
    for (const adapt::stretch& s : row.history.stretches) {
      if (s.what != adapt::activity::running) continue;
      all.emplace_back(s.response_s, s.end_s - s.start_s);
      whole += s.end_s - s.start_s;
    }
  }
  for (const level& l : view_.wanted) wanted = std::isfinite(l.value) ? std::max(wanted, l.value) : wanted;
  std::sort(all.begin(), all.end());
  double most = 0, before = 0;
  for (const auto& [response, length] : all) {
    if (before > 0.98 * whole) break;
    before += length;
    most = response;
  }
  const double full = most > 0 ? std::max(1.15 * most, std::min(1.3 * wanted, 4 * most)) : 1.3 * wanted;
  return full > 0 && std::isfinite(full) ? full : 1;
}

HETPLAN_INLINE void adaptation_rows::paint_response(const adapt::history& h, row_box box) {
  value_band all = k_.band(), on_time = k_.band(), late = k_.band();
  std::vector<level> in_time, too_late;
  bool beyond = false;
  for (const adapt::stretch& s : h.stretches) {
    if (s.what != adapt::activity::running) continue;
    beyond = beyond || s.response_s > full_s_;
    if (h.stretches.size() <= many) {
      (s.violates ? too_late : in_time).push_back({s.start_s, s.end_s, s.response_s});
      continue;
    }
    all.add(s.start_s, s.end_s, s.response_s);
    (s.violates ? late : on_time).add(s.start_s, s.end_s, s.response_s);
  }
  if (h.stretches.size() > many) {
    k_.chart.plot.path(on_time.range(box, full_s_), mix(adaptation_colors::on_time, palette::paper, 0.6).hex());
    k_.chart.plot.path(late.range(box, full_s_), mix(adaptation_colors::late, palette::paper, 0.6).hex());
    const auto mostly_late = [&](std::size_t b) { return late.weight(b) > on_time.weight(b); };
    in_time = all.means([&](std::size_t b) { return !mostly_late(b); });
    too_late = all.means(mostly_late);
  }
  double first_y = -100;
  for (const level& l : view_.wanted) {
    if (!(l.value <= full_s_)) continue;
    const double y = box.level(l.value / full_s_);
    k_.chart.plot.line(k_.x(l.from_s), y, k_.x(l.to_s), y, palette::ink, 1, " stroke-dasharray=\"5 3\"");
    if (l.from_s == 0) first_y = y;
  }
  k_.stroke(step_line(in_time, k_.chart.axis(), box, full_s_), adaptation_colors::on_time);
  k_.stroke(step_line(too_late, k_.chart.axis(), box, full_s_), adaptation_colors::late);
  if (first_y > 0) k_.chart.level("wanted " + engineering(view_.wanted.front().value, "s"), first_y + 3.5);
  if (std::abs(first_y - box.top - 4.5) > 10) k_.chart.level((beyond ? "≥ " : "") + engineering(full_s_, "s"), box.top + 8);
  if (std::abs(first_y - box.top - box.height) > 10) k_.chart.level("0", box.top + box.height);
}

HETPLAN_INLINE sign adaptation_rows::sign_of(adapt::rung r) {
  return r == adapt::rung::network      ? sign::network
         : r == adapt::rung::known_plan ? sign::known_plan
         : r == adapt::rung::replanned  ? sign::replanned
                                        : sign::event;
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
