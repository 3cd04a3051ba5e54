// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/mixing_program.hpp>

#include <algorithm>
#include <limits>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE switch_cost least_switch_cost(const plan_rates& rates, std::optional<std::size_t> running, std::size_t to) {
  switch_cost least = rates.cost(running, to);
  for (std::size_t from = 0; from < rates.plans.size(); ++from) {
    if (from == to || running == to) continue;
    const switch_cost other = rates.cost(from, to);
    least = {std::min(least.pause_s, other.pause_s), std::min(least.energy_J, other.energy_J)};
  }
  return least;
}

HETPLAN_INLINE lp_problem mixing_program(const plan_rates& rates, const mixing_goal& goal) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) throw invalid_input("mixing_program: horizon_s is " + to_text(goal.horizon_s) + "; expected more than 0");
  lp_problem lp;
  lp_problem::row progress{.terms = {}, .lower = goal.progress, .upper = goal.progress}, shares{.terms = {}, .lower = 1, .upper = 1};
  for (std::size_t p = 0; p < rates.plans.size(); ++p) {
    const switch_cost in = least_switch_cost(rates, goal.running, p);
    const double work_s = std::max(0.0, goal.horizon_s - in.pause_s);
    const bool useful = work_s > 0 && rates.plans[p].rate > 0;
    const int x = lp.add_column(rates.plans[p].power_W * work_s + rates.idle_W * in.pause_s + in.energy_J, 0, useful ? 1 : 0);
    progress.terms.emplace_back(x, rates.plans[p].rate * work_s);
    shares.terms.emplace_back(x, 1);
  }
  shares.terms.emplace_back(lp.add_column(rates.idle_W * goal.horizon_s, 0, 1), 1);
  const bool priced = std::isfinite(goal.shortfall_J);
  progress.terms.emplace_back(lp.add_column(priced ? goal.shortfall_J : 0, 0, priced ? std::numeric_limits<double>::infinity() : 0), 1);
  lp.rows = {progress, shares};
  return lp;
}

}  // namespace HETPLAN_NAMESPACE::adapt
