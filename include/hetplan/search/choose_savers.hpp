// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Choice of the memory savers of each stage under the judge.

#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Hill climbing over the memory savers that the job allows (job::memory_savers): each stage in turn recomputes nothing, its blocks or
/// everything; and a stage with
/// several devices shards nothing, its optimizer state, its gradients too (zero2) or its weights too (fsdp), and moves samples from one
/// device to another. A move is kept if it lowers (total excess over the limits, score); repeats until nothing helps.
///
/// @param starts  may break limits other than that of memory by their states alone. Their transfer rules are dropped; grids are left as
/// they
///                are.
/// @param budget  is spent; the plans found so far are returned when it is exhausted.
/// @return        for each start the best plan, if it keeps all limits by judge_quickly, with the largest warm-up that memory allows.
/// Complexity     at most starts x judged simulations.   Determinism  first improvement, in the order above.
/// Source         ours; recomputation: Chen et al., 2016; sharding: ZeRO (Rajbhandari et al., 2020).
[[nodiscard]] std::vector<plan> choose_savers(const planning_problem& problem, const any_objective& objective,
                                              const std::vector<plan>& starts, step_budget& budget, int judged = 120);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/choose_savers.ipp>
#endif
