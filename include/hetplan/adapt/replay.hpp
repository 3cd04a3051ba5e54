// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipeline replay: a plan for those who are left that moves the running plan's partition points and nothing else.

#include <span>
#include <vector>

#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// What counts as a layer's work when it is shared out.
enum class work_measure {
  flop,    ///< FLOP over a stage's capacity: needs no profile
  seconds  ///< the cost model's, layer by layer
};

struct replay_options {
  std::vector<work_measure> measures = {work_measure::flop, work_measure::seconds};
  /// How many times the transfer of a boundary, there and back at peak bandwidth, counts as a step beside the stages. 0 is
  /// proportion alone, which may cut through the widest tensors of a model; more than 1 stands for transfers that share
  /// their way. Each measure with each weight gives a cut, and the simulator chooses.
  std::vector<double> transfer_weights = {0, 0.5, 1, 2};
};

/// A plan for the devices that are left: the running plan's stages in their order, each with the devices of it that are
/// left, and other partition points. A stage without devices vanishes; its layers go to its neighbours.
///
/// All layers, in the order of the running plan's stages (a graph of stages: in its topological order, in which every cut
/// is sound), are shared out in proportion to the capacity of the stages: the largest FLOP / capacity is smallest among
/// all cuts that keep the memory. Capacity of a device: 1 / seconds of the whole model on one microbatch, of a stage the
/// sum. Cuts by seconds instead of FLOP compete (`measures`), and cuts that count the transfers between stages as steps, too
/// (`transfer_weights`). The microbatch is shared out inside each stage by partition::allocate, within memory. Warm-up
/// 2 depth - 1; where no cut keeps the memory with that, depth, then 1, raised again as far as the memory of the cut allows.
/// Where not every stage can have a layer, or stages that became neighbours have no route between them, stages are left out.
/// The simulator chooses: the shortest response among those
/// that keep the problem's limits; ties: the first measure, then the first weight.
///
/// Stages take the plan's microbatch size; transfer rules and a lost parameter server are given up. A plan that lists its orders gets new
/// ones: those in which its devices run it under `eager` (dispatch.hpp) within their memory, every backward in two parts where one was.
/// So it ends, with the tightest memory that is feasible, where the stages of a device form a chain. Stages on one device share its speed
/// and its memory evenly when the cut is made.
///
/// @param problem  as it is now: the cluster still has all devices, ids unchanged; speeds are what its cost model says.
/// @param lost     devices of the cluster that the plan must not use; empty: balances what runs.
/// @return         one plan with its prediction (no bound: that takes longer than the plan), or none found: what memory,
///                 limit or route is missing, nobody left, several pipelines, orders of generation, stages that save memory, grids, cuts.
/// Complexity      O(layers x devices) questions to the cost model, O(S L^2) steps for S stages of L layers, and a
///                 simulation for each measure and weight, for each warm-up rule until one fits.
/// Throws          invalid_input (an unknown device, a running plan that is invalid, a negative weight, no weight or no measure).
/// Determinism     yes, but for `elapsed`.
/// Source          Asteroid, section 3.4, layer-wise lightweight pipeline re-planning. Deviations: the partition points are
///                 the exact optimum of its criterion, within memory (the paper speaks of "a minor adjustment"); other
///                 cuts compete, and the simulator chooses. FLOP alone with a weight of 0 alone is the paper's criterion.
[[nodiscard]] plan_result lightweight_replay(const planning_problem& problem, const plan& running, std::span<const device_id> lost,
                                             const replay_options& options = {});

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/replay.ipp>
#endif
