// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans in which devices share tensors, made of plans in which they do not.

#include <vector>

#include <hetplan/core/step_budget.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct grid_moves {
  int plans = 2;            ///< that are improved
  int judged = 600;         ///< simulations of each at most, and of the grids of all layers together
  int judged_a_grid = 60;   ///< of one search of a grid
  std::size_t devices = 8;  ///< that one grid is searched among: the fastest
};

/// Moves under the judge: all layers on one grid; two stages that are next to each other on one; a stage on a grid of its devices and of
/// those that are free, or of some of them (partition::best_grid); a boundary (partition::move_boundaries). From each start as often as
/// one helps.
///
/// @param ranked  plans, best first; those with several pipelines, orders or rules of transfers of their own are left out. May be empty.
/// @param row     in which stages are cut, layer by layer.
/// @param budget  is spent; when it is, plans stay as they are by then.
/// @return        plans with grids, best first, not judged in full yet; none where no grid gains a thousandth.
/// Complexity     at most (plans + 1) x judged simulations.
/// Determinism    yes.
/// Source         ours; DeepCEE (section 3.3.3) splits unevenly inside a group.
[[nodiscard]] std::vector<plan> with_grids(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                           const layer_sequence& row, step_budget& budget, const grid_moves& options = {});

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_grids.ipp>
#endif
