// SPDX-License-Identifier: BSL-1.0
#pragma once
/// PipeDream: hybrid pipelines of largest throughput for clusters of equal machines.

#include <hetplan/cluster/homogeneous.hpp>
#include <hetplan/cluster/without.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain and equal devices on equal wires; neither memory nor contention, nor that a synchronous pipeline fills and
/// drains.
///
/// Minimises the largest step: a stage's work, its reduction, which hides behind work, or a transfer. 1F1B with as many
/// microbatches in flight as stages follow.
///
/// @return  one plan, the planner's choice.
/// Source   PipeDream (Narayanan et al., 2019), section 3.1. Deviations: synchronous, as in Asteroid, section 5.1; one level of
///          the network; see choose_on_view.
[[nodiscard]] inline plan_result pipedream(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                           const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(without_memory_limits(problem.cluster));
  return plan_on_view(problem, objective, "pipedream", chain, view, {.law = largest_step{}}, observer);
}

}  // namespace hetplan::recipes
