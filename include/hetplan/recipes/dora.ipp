// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/simulate/candidate_rounds.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

HETPLAN_INLINE plan_result scheduled(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                     schedule::refine_options options, const candidate_observer& observer) {
  planning_problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - found.steps);
  options.predicted = true;
  plan_result best = schedule::refine(rest, objective, found.plans, keep, options, observer);
  best.candidates += found.candidates;
  best.elapsed += found.elapsed;
  best.steps += found.steps;
  if ((best.status.ok() && found.out_of_steps) || best.out_of_steps) {
    best.out_of_steps = true;
    best.status = {outcome::stopped, out_of_steps(problem.steps, best.candidates)};
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE plan_result dora(const planning_problem& problem, const any_objective& objective, int keep, const dora_options& options,
                                const candidate_observer& observer) {
  check_keep(keep, "dora");
  planning_problem search = problem;
  search.steps = std::max(1LL, problem.steps / 2);  // the rest is for the transfers
  candidate_rounds rounds(2, objective, observer);
  plan_result found = dora_partitioner(search, objective, std::max(keep, options.partitioner.k), options.partitioner, rounds.part());
  if (found.out_of_steps) found.status.reason = out_of_steps(problem.steps, found.candidates);
  if (found.plans.empty() || (!found.status.ok() && !found.out_of_steps)) {  // nothing fits, or an observer said stop
    if (found.plans.size() > static_cast<std::size_t>(keep)) found.plans.resize(static_cast<std::size_t>(keep));
    return found;
  }
  return detail::scheduled(problem, objective, std::move(found), keep, options.network, rounds.part());
}

HETPLAN_INLINE plan_result dora(const planning_problem& problem, const any_objective& objective, int keep,
                                const candidate_observer& observer) {
  return dora(problem, objective, keep, dora_options{}, observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
