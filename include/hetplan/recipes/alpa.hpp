// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Alpa: stages on groups of equal devices, with tensor parallelism where accelerators share a machine.

#include <hetplan/cluster/homogeneous.hpp>
#include <hetplan/graph/chain_view.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Sees a chain and equal devices, each with the least memory of all, on equal wires; no contention.
///
/// Minimises sum + (M - 1) largest over the stages; inside a stage, samples are shared evenly among devices, and each device
/// splits tensors among its accelerators in the degree that is fastest.
///
/// @return  one plan, the planner's choice.
/// Source   Alpa (Zheng et al., 2022), section 5, eqs. 2-4. Deviations: the intra-operator choice is the degree of tensor
///          parallelism inside a device, no integer program over operators; groups of any number of machines; exact instead of
///          a sweep over largest stages; see choose_on_view.
[[nodiscard]] inline plan_result alpa(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                      const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = homogeneous(problem.cluster);
  return plan_on_view(problem, objective, "alpa", chain, view, {.law = sum_and_largest{}}, observer);
}

}  // namespace hetplan::recipes
