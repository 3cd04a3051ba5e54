// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_adapter.hpp>

#include <algorithm>

#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result dora_planner::operator()(const planning_problem& problem, std::span<const plan> known) const {
  constexpr int narrow = 3;
  const any_objective objective = objective_of_job(problem.job);
  planning_problem part = problem;
  part.with_bounds = false;
  ranking best(part, objective, std::max<int>(1, static_cast<int>(known.size())));
  for (plan p : known) {
    p.sharing_policy = sharing::fair_share;
    p.schedule.transfers.clear();  // rules of another network
    best.consider(std::move(p), static_cast<long long>(known.size()));
  }
  dora_options how = options;
  how.incumbents.clear();
  how.partitioner.k = std::min(how.partitioner.k, narrow);
  how.partitioner.polish.plans = std::min(how.partitioner.polish.plans, 1);
  how.partitioner.known = std::move(best).result().plans;
  if (how.partitioner.known.empty()) return (*this)(problem);
  return dora(problem, objective, keep, how);
}

}  // namespace hetplan::recipes
