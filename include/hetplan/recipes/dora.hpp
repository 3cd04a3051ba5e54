// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora: the partitioner's best plans, each with the best schedule of its transfers; the best of all wins.

#include <algorithm>

#include <hetplan/recipes/dora_partitioner.hpp>
#include <hetplan/schedule/refine.hpp>

namespace hetplan::recipes {

struct dora_options {
  partitioner_options partitioner = {};    ///< phase 1
  schedule::refine_options network = {};   ///< phase 2
};

/// Phases 1 and 2. A linear-program solver in the problem helps where a candidate's schedule is not proven optimal.
/// Observers hear of two rounds of candidates: as phase 1 found them, and scheduled.
///
/// @return      as dora_partitioner; no plan is worse than the same plan with its transfers left alone.
/// Complexity   that of dora_partitioner, and of schedule::refine for `k` plans.
/// Source       Dora, sections 4.1 and 4.2. Deviation: a candidate that breaks an energy or busy limit with its transfers left
///              alone is dropped in phase 1, though a schedule might mend it.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora(const Problem& problem, const Objective& objective, int keep, const dora_options& options,
                               Observers&&... observers) {
  check_keep(keep, "dora");
  plan_result found = dora_partitioner(problem, objective, std::max(keep, options.partitioner.k), options.partitioner, observers...);
  if (!found.status.ok()) {  // stopped, or nothing fits
    if (found.plans.size() > static_cast<std::size_t>(keep)) found.plans.resize(static_cast<std::size_t>(keep));
    return found;
  }
  plan_result best = schedule::refine(problem, objective, found.plans, keep, options.network, observers...);
  best.candidates += found.candidates;
  best.elapsed += found.elapsed;
  return best;
}
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  return dora(problem, objective, keep, dora_options{}, observers...);
}

}  // namespace hetplan::recipes
