// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dapple: synchronous hybrid pipelines for clusters of equal machines.

#include <hetplan/cluster/homogeneous.hpp>
#include <hetplan/cluster/without.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain and equal devices on equal wires; neither memory nor contention.
///
/// Minimises warm-up + steady phase + drain around the pivot stage, which is the dominant step; samples of a replicated stage
/// are shared evenly; warm-up 2 (P - p) - 1, its policy for stages whose transfers take as long as their work.
///
/// @return  one plan, the planner's choice.
/// Source   Dapple (Fan et al., 2021), sections 3 and 4. Deviations: machines of one device each, so that its three placement
///          policies coincide; see choose_on_view.
[[nodiscard]] inline plan_result dapple(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                        const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(without_memory_limits(problem.cluster));
  return plan_on_view(problem, objective, "dapple", chain, view, {.warmups = {warmup_rule::hide_communication}}, observer);
}

}  // namespace hetplan::recipes
