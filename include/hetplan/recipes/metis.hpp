// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Metis: load-balanced hybrid pipelines on unequal devices.

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain, unequal devices with their memories, and bandwidths between pairs; no contention.
///
/// Groups of devices in every order of their classes; samples of a stage go to its devices in proportion to what they can do,
/// within memory; minimises sum + (M - 1) largest over the steps.
///
/// @return  one plan, the planner's choice.
/// Source   Metis (Um et al., 2024): heterogeneity-aware groups, load balancing, and the latency of its cost estimator.
///          Deviations: exact shares and cuts instead of its balancing rounds, and no cap on the groups that are tried; see
///          choose_on_view.
[[nodiscard]] inline plan_result metis(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                       const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster);
  return plan_on_view(problem, objective, "metis", chain, view, {.law = sum_and_largest{}}, observer);
}

}  // namespace hetplan::recipes
