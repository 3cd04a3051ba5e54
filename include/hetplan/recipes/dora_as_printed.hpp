// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora as its paper prints it: what our dora adds to it shows in the difference.

#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// Sees the graph as serial chains, unequal devices with their memories, and every pair of devices at its peak bandwidth; no contention.
///
/// Phase 1: the two-substate search, devices by memory, largest first, for every microbatch size; ten partial plans per cell. Of the ten
/// best plans by its own estimate it takes the first that keeps all limits. Phase 2: that one gets the best schedule of its transfers,
/// and is judged on the cluster as it is.
///
/// @param keep  is not read: one plan, the planner's choice.
/// @return      infeasible where none of the ten keeps the limits.
/// Complexity   sizes times partition::two_substate_dp, and schedule::refine for one plan.
/// Source       Dora, sections 4.1 and 4.2, Algorithm 1, eqs. 2-6. Deviations: the exact state of the dominant-step estimate instead of
///              the printed critical path, which counts warm-up and drain twice; blocks merge by parameters and FLOP; phase 2 is
///              schedule::refine, for eq. 6 is not linear; warm-up K_p = 2 (P - p) - 1, P - p where
///              nothing fits, then 1.
[[nodiscard]] plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int keep = 1,
                                          const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_as_printed.ipp>
#endif
