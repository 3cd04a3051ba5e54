// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/adaptation_hover.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <range/v3/view/drop.hpp>
#include <range/v3/view/zip.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

HETPLAN_INLINE std::string explain_adoption(const adaptation_view& view, std::size_t p, const adapt::adoption& a) {
  std::string text = view.policies[p].policy + ": plan " + view.name(p, a.from) + " → " + view.name(p, a.to) + " (" +
                     std::string(to_string(a.reached)) + ")";
  if (!a.reason.empty()) text += "\n" + a.reason;
  text += "\ncaused at " + clock_text(a.caused_s) + ", decided " + clock_text(a.decided_s - a.caused_s) + " later, in force " +
          clock_text(a.done_s - a.caused_s) + " later";
  if (a.stall_s > 0) text += "\nhalted for " + clock_text(a.stall_s);
  if (a.moved_bytes > 0) text += "\nmoved " + engineering(a.moved_bytes, "B") + " with " + engineering(a.moved_J, "J");
  return text;
}

/// What happened within a part of the time, for the pointer.
struct span_summary {
  std::array<double, 5> part_s{};  ///< by activity
  double iterations = 0, late = 0, energy_J = 0;
  double least_s = std::numeric_limits<double>::infinity(), most_s = 0;  ///< response
  std::vector<std::size_t> plans = {};                                   ///< that ran; the first few

  void add(const adapt::stretch& s, double from_s, double to_s) {
    const double length = s.end_s - s.start_s, share = length > 0 ? (to_s - from_s) / length : 1;
    part_s[static_cast<std::size_t>(s.what)] += to_s - from_s;
    energy_J += share * s.energy_J;
    if (s.what != adapt::activity::running) return;
    iterations += share * static_cast<double>(s.iterations);
    if (s.violates) late += share * static_cast<double>(s.iterations);
    least_s = std::min(least_s, s.response_s);
    most_s = std::max(most_s, s.response_s);
    if (plans.size() < 5 && std::find(plans.begin(), plans.end(), s.plan) == plans.end()) plans.push_back(s.plan);
  }
};

[[nodiscard]] HETPLAN_INLINE std::string explain_span(const adaptation_view& view, std::size_t p, const span_summary& s, double from,
                                                      double to) {
  std::string text = view.policies[p].policy + ", " + clock_text(from) + " to " + clock_text(to);
  std::string plans;
  for (const std::size_t i : s.plans) plans += (plans.empty() ? "" : ", ") + view.name(p, i);
  if (!plans.empty()) text += "\nplan " + plans;
  for (std::size_t a = 0; a < s.part_s.size(); ++a) {
    const double share = to > from ? 100 * s.part_s[a] / (to - from) : 0;
    if (s.part_s[a] <= 0) continue;
    text += "\n" + std::string(to_string(static_cast<adapt::activity>(a))) + (share < 99.95 ? " " + fixed(share, 1) + " %" : "");
  }
  if (s.iterations > 0) {
    text += "\n" + fixed(s.iterations, s.iterations < 10 ? 1 : 0) + " iterations, response " + engineering(s.least_s, "s");
    if (s.most_s > s.least_s) text += " to " + engineering(s.most_s, "s");
    if (const double wanted = view.wanted_at(from); std::isfinite(wanted)) text += ", wanted " + engineering(wanted, "s");
    if (s.late > 0) text += "\n" + fixed(s.late, s.late < 10 ? 1 : 0) + " of them late";
  }
  return text + "\n" + engineering(s.energy_J, "J");
}

HETPLAN_INLINE void explain_spans(adaptation_canvas& k, std::size_t p, row_box box) {
  const auto& stretches = k.view.policies[p].history.stretches;
  if (stretches.empty()) return;
  std::vector<double> cuts{stretches.front().start_s};
  for (std::size_t i = 1; i < stretches.size() && cuts.size() <= k.detail.cells; ++i) {
    const adapt::stretch &a = stretches[i - 1], &b = stretches[i];
    if (a.what != b.what || a.plan != b.plan || a.response_s != b.response_s || a.violates != b.violates) cuts.push_back(b.start_s);
  }
  if (cuts.size() > k.detail.cells) {
    cuts.clear();
    const double from = stretches.front().start_s, to = stretches.back().end_s;
    const auto parts = static_cast<double>(k.detail.cells);
    for (std::size_t i = 0; i < k.detail.cells; ++i) cuts.push_back(from + (to - from) * static_cast<double>(i) / parts);
  }
  cuts.push_back(stretches.back().end_s);
  std::size_t i = 0;
  for (const auto& [from, to] : ranges::views::zip(cuts, cuts | ranges::views::drop(1))) {
    span_summary sum;
    while (i < stretches.size() && stretches[i].end_s <= from) ++i;
    for (std::size_t j = i; j < stretches.size() && stretches[j].start_s < to; ++j)
      sum.add(stretches[j], std::max(from, stretches[j].start_s), std::min(to, stretches[j].end_s));
    k.cell(from, to, box, explain_span(k.view, p, sum, from, to));
  }
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
