// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/mixing_program.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <hetplan/core/error.hpp>

namespace hetplan::mix {

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

HETPLAN_INLINE mixture mix_relaxed(const plan_rates& rates, const mixing_goal& goal, const any_lp_solver& solver) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) return detail::mixture_without_time(goal);
  const lp_solution s = solver.solve(mixing_program(rates, goal));
  mixture m{.control = mixture_control::receding_horizon};
  if (s.status == lp_status::infeasible) {
    double most = 0;
    for (std::size_t p = 0; p < rates.plans.size(); ++p)
      most = std::max(most, rates.plans[p].rate * std::max(0.0, goal.horizon_s - least_switch_cost(rates, goal.running, p).pause_s));
    m.status = {outcome::infeasible,
                "mix_relaxed: no mixture does " + to_text(goal.progress) + " units of work in " + to_text(goal.horizon_s) + " s",
                infeasibility_proof{"mixtures of plans", {{"units of work by the fastest plan alone", goal.progress, most}}}};
    return m;
  }
  if (s.status != lp_status::optimal) {
    m.status = {outcome::stopped, "mix_relaxed: the solver has no answer"};
    return m;
  }
  const std::size_t n = rates.plans.size();
  const auto add = [&](std::size_t p) {
    if (s.x[p] < 1e-12) return;
    const double pause_s = least_switch_cost(rates, goal.running, p).pause_s;
    m.parts.push_back({p, s.x[p] * pause_s, s.x[p] * (goal.horizon_s - pause_s)});
  };
  if (goal.running) add(*goal.running);
  for (std::size_t p = 0; p < n; ++p) {
    if (goal.running != p) add(p);
  }
  m.idle_s = s.x[n] * goal.horizon_s;
  m.shortfall = s.x[n + 1];
  m.progress = goal.progress - m.shortfall;
  m.objective = s.objective;
  m.energy_J = std::isfinite(goal.shortfall_J) ? s.objective - goal.shortfall_J * m.shortfall : s.objective;
  return m;
}

}  // namespace hetplan::mix
