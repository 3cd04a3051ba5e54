// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/find_schedule.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/list_schedule.hpp>

namespace hetplan::place {

HETPLAN_INLINE operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp) {
  operator_schedule best = heft(t, r);
  const auto consider = [&](operator_schedule s) {
    if (s.makespan_s < best.makespan_s) best = std::move(s);
  };
  consider(peft(t, r));
  consider(m_etf(t, r));
  consider(m_sct(t, r, lp));
  consider(getf(t, r, lp));
  return best;
}

namespace detail {

/// At sharp milestones first, whose parts may be large; then as finely as milestones with something beside them allow; at last not at all,
/// where the whole is small: memory couples parts.
[[nodiscard]] HETPLAN_INLINE std::vector<series_parts> ways_to_cut(const placement_table& t, std::size_t small) {
  if (t.devices() > 64) return {};
  std::vector<series_parts> ways{find_series_parts(t, {.wanted_operators = 400}), find_series_parts(t)};
  if (t.size() <= small) ways.push_back({.parts = {{t.order().begin(), t.order().end()}}});
  return ways;
}

}  // namespace detail

HETPLAN_INLINE operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options,
                                               const any_observer<schedule_improved>& observer) {
  const placement_bounds bounds = bounds_of(t);
  constexpr double never_s = std::numeric_limits<double>::infinity();
  if (!bounds.status.ok()) return {.status = bounds.status, .bound_s = never_s};
  operator_schedule best = best_list_schedule(t, r, options.lp);
  if (best.status.result == outcome::infeasible) {
    best.bound_s = never_s;
    return best;
  }
  if (options.known.makespan_s < best.makespan_s) best = options.known;
  best.bound_s = std::min(best.makespan_s, std::max(options.known.bound_s, bounds.best_s()));
  bool stopped = false;
  const auto watch = [&](const schedule_improved& e) {
    stopped = stopped || (observer && observer(e) == control::stop);
    return stopped ? control::stop : control::go;
  };
  if (best.found()) static_cast<void>(watch({best.makespan_s, 0}));
  std::vector<series_parts> done;
  for (series_parts& parts : detail::ways_to_cut(t, options.series.exact_operators)) {
    const auto same = [&](const series_parts& other) { return other.milestones == parts.milestones; };
    if (stopped || best.gap() == 0 || best.exhausted || std::any_of(done.begin(), done.end(), same)) continue;
    series_search_options series = options.series;
    series.steps = std::min(options.steps / (done.empty() ? 4 : 8), series.steps);
    if (!series.lp.exists()) series.lp = options.lp;
    operator_schedule by_parts = series_schedule(t, r, parts, series, watch);
    if (by_parts.status.result == outcome::infeasible) return by_parts;  // proven
    const double bound_s = std::max(best.bound_s, by_parts.bound_s);
    const long long steps = best.steps + by_parts.steps;
    const bool exhausted = by_parts.exhausted;
    if (by_parts.makespan_s < best.makespan_s) best = std::move(by_parts);
    best.bound_s = std::min(bound_s, best.makespan_s);
    best.steps = steps;
    best.exhausted = exhausted;
    done.push_back(std::move(parts));
  }
  if (best.found() && !stopped && best.gap() > 0 && !best.exhausted) {
    improve_options improve = options.improve;
    improve.steps = std::min(options.steps / 4, improve.steps);
    best = improve_schedule(t, r, std::move(best), improve, watch);
  }
  if (!best.found())
    best.status.reason = "no list schedule and no row of parts, searched with " + std::to_string(best.steps) +
                         " steps, keeps memory and routes; the first: " + best.status.reason;
  if (best.found()) best.status = stopped ? status{outcome::stopped, "an observer stopped the search; the best so far"} : status{};
  return best;
}

}  // namespace hetplan::place
