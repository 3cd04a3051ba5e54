// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EdgeShard: pipelines of single unequal devices, for inference first of all.

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain, unequal devices with their memories, and bandwidths between pairs; no contention, no replicated stages.
///
/// Consecutive layers on some of the devices in any order, one per stage, so that the largest step is smallest; where the job
/// has one microbatch only, nothing is pipelined and the sum of all steps counts.
///
/// @return  one plan, the planner's choice.
/// Source   EdgeShard (Zhang et al., 2024), its two dynamic programs for throughput and for latency. Deviations: also training,
///          as Dora, section 6.1, runs it; any layer may be the first on any device; see choose_on_view.
[[nodiscard]] inline plan_result edgeshard(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster);
  const bool one_microbatch = problem.job.candidate_microbatch_sizes().front() == problem.job.batch;
  return plan_on_view(problem, objective, "edgeshard", chain, view,
                      {.law = one_microbatch ? any_step_law(sum_and_largest{}) : largest_step{}, .largest_group = 1}, observer);
}

}  // namespace hetplan::recipes
