// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/find_schedule.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include <hetplan/place/getf.hpp>
#include <hetplan/place/heft.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/m_etf.hpp>
#include <hetplan/place/m_sct.hpp>
#include <hetplan/place/placement_bounds.hpp>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp) {
  operator_schedule best = heft(t, r);
  const auto consider = [&](operator_schedule s) {
    if (s.makespan_s < best.makespan_s) best = std::move(s);
  };
  consider(peft(t, r));
  consider(m_etf(t, r));
  consider(m_sct(t, r, lp));
  if (t.size() <= 5000) consider(getf(t, r, lp));
  consider(one_device(t, r));
  return best;
}

HETPLAN_INLINE operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options,
                                               const any_observer<schedule_improved>& observer) {
  const placement_bounds bounds = bounds_of(t);
  if (!bounds.infeasible.empty()) return {.status = {outcome::infeasible, bounds.infeasible}};
  operator_schedule best = best_list_schedule(t, r, options.lp);
  best.bound_s = std::min(best.makespan_s, bounds.best_s());
  bool stopped = false;
  const auto watch = [&](const schedule_improved& e) {
    stopped = stopped || (observer && observer(e) == control::stop);
    return stopped ? control::stop : control::go;
  };
  if (best.found()) static_cast<void>(watch({best.makespan_s, 0}));
  // Sharp milestones first, whose parts may be large; then parts as small as milestones with something beside them allow.
  series_parts before;
  for (const std::size_t wanted : {std::size_t{400}, series_options{}.wanted_operators}) {
    const series_parts parts = find_series_parts(t, {.wanted_operators = wanted});
    if (stopped || best.gap() == 0 || t.devices() > 64 || parts.milestones == before.milestones) break;
    series_search_options series = options.series;
    series.steps = std::clamp(options.steps / 2, 0LL, series.steps) / (before.parts.empty() ? 1 : 2);
    if (!series.lp.exists()) series.lp = options.lp;
    operator_schedule by_parts = series_schedule(t, r, parts, series, watch);
    if (by_parts.status.result == outcome::infeasible) return by_parts;
    const double bound_s = std::max(best.bound_s, by_parts.bound_s);
    const long long steps = best.steps + by_parts.steps;
    if (by_parts.makespan_s < best.makespan_s) best = std::move(by_parts);
    best.bound_s = std::min(bound_s, best.makespan_s);
    best.steps = steps;
    before = parts;
  }
  if (best.found() && !stopped && best.gap() > 0) {
    improve_options improve = options.improve;
    improve.steps = std::clamp(options.steps - best.steps, 0LL, improve.steps);
    best = improve_schedule(t, r, std::move(best), improve, watch);
  }
  if (best.found()) best.status = stopped ? status{outcome::stopped, "an observer stopped the search; the best so far"} : status{};
  return best;
}

}  // namespace HETPLAN_NAMESPACE::place
