// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GPipe: stages of balanced work on equal devices, all forwards before all backwards.

#include <hetplan/cluster/homogeneous.hpp>
#include <hetplan/cluster/without.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain and equal devices; neither memory nor what the network takes.
///
/// Consecutive layers, one device per stage, so that the largest stage takes as little time as possible; microbatches pass
/// forward through all stages, then backward.
///
/// @return  one plan, the planner's choice.
/// Source   GPipe (Huang et al., 2019), section 2, and Asteroid, section 5.5, on what its partition overlooks. Deviations: see
///          choose_on_view; no recomputation of activations.
[[nodiscard]] inline plan_result gpipe(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = without_network_costs(homogeneous(without_memory_limits(problem.cluster)));
  return plan_on_view(problem, objective, "gpipe", chain, view,
                      {.law = largest_step{}, .schedule = schedule_kind::gpipe, .largest_group = 1}, observer);
}

}  // namespace hetplan::recipes
