// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsen, decompose into serial chains, search both substates, let the simulator choose.

#include <hetplan/core/observer.hpp>
#include <hetplan/graph/light_boundaries.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/simulate/polish.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct partitioner_options {
  bool across_chains = true;  ///< a stage may also hold pieces of neighbouring chains
  double merge_share = 0.05;  ///< Delta: blocks stay below this share of all parameters and of all FLOP
  int k = 20;                 ///< partial plans per cell, and plans per search that the simulator judges
  int max_stages = 16;
  double most_moves = partition::affordable_moves;  ///< device orders: all of them up to so many moves of the search, else a few
  std::size_t light_blocks = 200;                   ///< of a second row: the model's own numbering, cut where little crosses; 0: none
  polish_options polish = {};                       ///< of the best plans found
};

/// For every microbatch size, device order and warm-up rule: the K best plans under the dominant-step estimate, which
/// relaxes contention; the simulator, which knows it, ranks them all; the best ones are polished under it.
///
/// An objective that is not monotone in (response, energy) cannot steer the search: then latency does, and the
/// objective ranks what is found.
///
/// @return     infeasible: the limit that binds in the plan that comes nearest, on which device, by how much. Stopped: the budget
///             of the problem was spent.
/// Complexity  B sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP;
///             lower warm-ups compete instead of coming last, and are lowered only as far as memory asks; stages may
///             cross chains, for Dora's two substates alone lose up to 3.4 x (docs/reproduction/dora.md); a second, finer row in
///             the model's own numbering; polishing.
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                           const partitioner_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                           const candidate_observer& observer = {});

}  // namespace HETPLAN_NAMESPACE::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_partitioner.ipp>
#endif
