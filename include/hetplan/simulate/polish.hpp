// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The last step of a search that relaxes something: its best plans, improved under the judge.

#include <vector>

#include <hetplan/core/step_budget.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Where polishing may put boundaries.
enum class polish_boundaries {
  of_blocks,  ///< of a row: every stage stays one of the row (layer_sequence::is_stage)
  of_layers,  ///< between any two layers of a row, also inside its blocks and chains
};

struct polish_options {
  int plans = 3;     ///< that are improved, no two with the same kinds of devices in their stages and microbatch size; 0: none
  int judged = 150;  ///< simulations of each at most, in each of two rounds
  polish_boundaries boundaries = polish_boundaries::of_blocks;
};

/// Moves the boundaries of the best plans, and their stages among devices, to where the judge likes them best.
///
/// @param ranked  plans, best first; those with orders or rules of transfers of their own are left out.
/// @param budget  is spent; when it is, plans stay as they are by then.
/// @param rows    sequences that the plans' stages were cut from, tried one after the other; a plan that is no cut of any stays as it
///                is, and one of the row that moved it last stays one.
/// @return        one plan for each that was chosen, no worse, not judged yet; warm-up as large as memory allows.
/// Complexity     at most 2 x plans x judged simulations for each row: first between light boundaries, then between any; none twice.
/// Source         own; see partition::move_boundaries.
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options, step_budget& budget);
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/polish.ipp>
#endif
