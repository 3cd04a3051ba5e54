// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Zero bubble: a pipeline of single devices whose backwards are split, so that gradients of weights fill its gaps.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// The cuts of `pipeline` with the orders that the job names, or by default those of zero bubble (`original`) and the best that a search
/// finds (`automatic`), each judged on the network as it is. Then the same devices as a V: each has two stages, the last of them where the
/// first is, cut so that the longest is as short as possible, with ZB-V's orders and those of half and a third of the memory.
///
/// Outside training it is `pipeline`.
///
/// @return      no plan is worse than `pipeline`'s with those orders.
/// Complexity   that of pipeline with half of the steps, and of schedule::choose_orders for its best plans.
/// Throws       invalid_input (keep < 1); what pipeline throws.   Determinism  yes, but for `elapsed`.
/// Source       Qi et al., Zero Bubble Pipeline Parallelism, 2023; Pipeline Parallelism with Controllable Memory, 2024. Deviation: their
///              devices are equal, and stages whole blocks.
[[nodiscard]] plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                      const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/zero_bubble.ipp>
#endif
