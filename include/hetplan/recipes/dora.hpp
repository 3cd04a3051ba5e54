// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora: the partitioner's best plans, each with the best schedule of its transfers; the best of all wins.

#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora_partitioner.hpp>
#include <hetplan/schedule/refine.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct dora_options {
  partitioner_options partitioner = {};   ///< phase 1
  schedule::refine_options network = {};  ///< phase 2
};

namespace detail {

/// Phase 2 over what a search has found, with the steps that it has left.
[[nodiscard]] plan_result scheduled(const planning_problem& problem, const any_objective& objective, plan_result found, int keep,
                                    schedule::refine_options options, const candidate_observer& observer);

}  // namespace detail

/// Phases 1 and 2. A linear-program solver in the problem helps where a candidate's schedule is not proven optimal.
/// Observers receive candidates of both phases, as the first found them and then scheduled, in one count.
///
/// @return      as dora_partitioner, which gets half of the problem's steps; no plan is worse than the same plan with its
///              transfers left alone.
/// Complexity   that of dora_partitioner, and of schedule::refine for `k` plans.
/// Source       Dora, sections 4.1 and 4.2. Deviation: a candidate that breaks an energy or busy limit with its transfers
///              left alone is dropped in phase 1, though a schedule might mend it.
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep, const dora_options& options,
                               const candidate_observer& observer = {});
[[nodiscard]] plan_result dora(const planning_problem& problem, const any_objective& objective, int keep = 10,
                               const candidate_observer& observer = {});

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora.ipp>
#endif
