// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plans that keep every limit, from plans that break one: shares, groups and boundaries move while the judge sees less too much.

#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

// The last step of a search that relaxes something: its best plans, improved under the judge.

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

struct mend_options {
  int judged = 400;           ///< simulations of each start at most
  long long steps = 500'000;  ///< of the budget at most: half for the climbs, the rest for the plans of a small space
  bool small_space = true;    ///< where no climb ends within the limits: plans of every cut, group and share, as far as steps go
  int plans = 3;              ///< that are answered at most
};

/// A search knows what a stage costs, not what a run of the whole plan makes of an energy budget (idling costs) or of a busy share (which
/// waiting lowers): there other shares than the fastest ones may be the only ones. From each start, and from runs of the whole model on
/// each device and on all of them, hill climbing by (what is too much in all limits together, score): samples move between the devices of a
/// stage and to idle ones, stages trade devices, boundaries move, stages join and part; those that touch the device that breaks its limit
/// most come first. As long as that finds nothing, again from a few moves away from where it came nearest; then, where there are few layers
/// and devices, partition::for_each_plan with all shares.
///
/// @param starts   plans of one pipeline; those with explicit orders, or whose stages are no runs of the model's numbering, are left out.
/// @param planner  whose the plans are.
/// @return         plans that keep every limit by judge_quickly, the best first; warm-up as large as memory allows.
/// Complexity      as the options say.
/// Determinism     first improvement, in the order above.
/// Source          own.
[[nodiscard]] std::vector<plan> mend_limits(const planning_problem& problem, const any_objective& objective, const char* planner,
                                            const std::vector<plan>& starts, step_budget& budget, const mend_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/mend_limits.ipp>
#endif
