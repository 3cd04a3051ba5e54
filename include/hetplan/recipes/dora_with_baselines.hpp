// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora, with the answers of all baselines among its candidates: never worse than any of them.

#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Phase 1, every baseline's answer, and phase 2 over all of them.
///
/// @return     the `keep` best; stopped: of what was judged until then.
/// Complexity  the sum of its parts.
/// Source      ours: what a user wants who only cares for the best plan; Dora's own answer is recipes::dora.
[[nodiscard]] plan_result dora_with_baselines(const planning_problem& problem, const any_objective& objective, int keep,
                                              const dora_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_with_baselines(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                              const candidate_observer& observer = {});

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_with_baselines.ipp>
#endif
