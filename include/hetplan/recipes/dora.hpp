// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora: the partitioner's best plans, each with the best schedule of its transfers; the best of all wins.

#include <algorithm>
#include <utility>

#include <hetplan/recipes/dora_partitioner.hpp>
#include <hetplan/schedule/refine.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct dora_options {
  partitioner_options partitioner = {};   ///< phase 1
  schedule::refine_options network = {};  ///< phase 2
};

namespace detail {

/// Phase 2 over what a search has found, with the steps that it has left.
template <class Problem, objective Objective, class... Observers>
[[nodiscard]] plan_result scheduled(const Problem& problem, const Objective& objective, plan_result found, int keep,
                                    schedule::refine_options options, Observers&... observers) {
  Problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - found.steps);
  options.predicted = true;
  plan_result best = schedule::refine(rest, objective, found.plans, keep, options, observers...);
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

/// Phases 1 and 2. A linear-program solver in the problem helps where a candidate's schedule is not proven optimal.
/// Observers receive two rounds of candidates: as phase 1 found them, and scheduled.
///
/// @return      as dora_partitioner, which gets half of the problem's steps; no plan is worse than the same plan with its transfers left
/// alone. Complexity   that of dora_partitioner, and of schedule::refine for `k` plans. Source       Dora, sections 4.1 and 4.2. Deviation:
/// a candidate that breaks an energy or busy limit with its transfers left
///              alone is dropped in phase 1, though a schedule might mend it.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora(const Problem& problem, const Objective& objective, int keep, const dora_options& options,
                               Observers&&... observers) {
  check_keep(keep, "dora");
  Problem search = problem;
  search.steps = std::max(1LL, problem.steps / 2);  // the rest is for the transfers
  plan_result found = dora_partitioner(search, objective, std::max(keep, options.partitioner.k), options.partitioner, observers...);
  if (found.out_of_steps) found.status.reason = out_of_steps(problem.steps, found.candidates);
  if (found.plans.empty() || (!found.status.ok() && !found.out_of_steps)) {  // nothing fits, or an observer said stop
    if (found.plans.size() > static_cast<std::size_t>(keep)) found.plans.resize(static_cast<std::size_t>(keep));
    return found;
  }
  return detail::scheduled(problem, objective, std::move(found), keep, options.network, observers...);
}
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  return dora(problem, objective, keep, dora_options{}, observers...);
}

}  // namespace HETPLAN_NAMESPACE::recipes
