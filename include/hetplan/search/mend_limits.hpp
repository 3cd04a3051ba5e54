// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Local search under the judge: polishing of good plans, and mending of plans that break a limit.

#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Positions where polishing may put boundaries.
enum class polish_boundaries {
  of_blocks,  ///< between blocks of a sequence: stages stay valid by layer_sequence::is_stage
  of_layers,  ///< between any two layers of a sequence, also inside blocks and chains
};

struct polish_options {
  int plans = 3;     ///< number of plans to improve, distinct in microbatch size and in the device kinds of the stages; 0: none
  int judged = 150;  ///< maximum number of simulations per plan in each of two rounds
  polish_boundaries boundaries = polish_boundaries::of_blocks;
};

/// Moves the boundaries of the best plans, and swaps the devices of their stages, to improve the judge's score.
///
/// @param ranked  plans, best first; those with explicit orders or transfer rules are skipped.
/// @param budget  is spent; the plans found so far are returned when it is exhausted.
/// @param rows    layer sequences that the plans' stages were cut from, tried in turn. A plan that is no cut of any of them stays
///                unchanged; others remain cuts of the sequence that moved them last.
/// @return        one plan per chosen plan, no worse and not yet judged, with the largest warm-up that memory allows.
/// Complexity     at most 2 x plans x judged simulations per sequence: first on light boundaries, then on all; no plan is simulated twice.
/// Source         own; see partition::move_boundaries.
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options, step_budget& budget);
[[nodiscard]] std::vector<plan> polish(const planning_problem& problem, const any_objective& objective, const std::vector<plan>& ranked,
                                       const std::vector<layer_sequence>& rows, const polish_options& options = {});

struct mend_options {
  int judged = 400;           ///< maximum number of simulations per start
  long long steps = 500'000;  ///< budget limit: half for hill climbing, the rest for the enumeration of a small space
  bool small_space = true;    ///< true to enumerate plans of all cuts, groups and shares, within `steps`, if hill climbing keeps no limits
  int plans = 3;              ///< maximum number of plans to return
};

/// Finds plans that keep all limits. The limits may require other shares than the fastest ones: a search knows the cost of a stage, but not
/// the effect of the whole run on an energy budget (idling costs) or a busy share (waiting lowers it).
///
/// Hill climbing starts at each start and at runs of the whole model on each device and on all devices, and minimises (total excess over
/// the limits, score). Samples move between the devices of a stage and to idle ones, stages trade devices, boundaries move, stages merge
/// and split; moves that touch the device with the worst excess come first. If no plan is found, it restarts a few moves away from the
/// nearest one; then, for few layers and devices, partition::for_each_plan enumerates with all shares.
///
/// @param starts   plans of one pipeline; those with explicit orders or stages that are no runs of the model's numbering are skipped.
/// @param planner  name of the plans' planner.
/// @return         plans that keep every limit by judge_quickly, best first, with the largest warm-up that memory allows.
/// Complexity      bounded by the options.
/// Determinism     first improvement, in the order above.
/// Source          own.
[[nodiscard]] std::vector<plan> mend_limits(const planning_problem& problem, const any_objective& objective, const char* planner,
                                            const std::vector<plan>& starts, step_budget& budget, const mend_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/mend_limits.ipp>
#endif
