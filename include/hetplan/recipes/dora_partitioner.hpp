// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsen, decompose into serial chains, search both substates, let the simulator choose.

#include <optional>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/search/mend_limits.hpp>

namespace hetplan::recipes {

/// joined_chains, then serial_chains (Dora's two substates: pieces of one chain, runs of whole chains), then light_row.
[[nodiscard]] std::vector<decompose::any_decomposition> usual_rows();

struct partitioner_options {
  /// What is cut, one after the other: behind the first only for microbatch sizes that some of the best plans so far have. Equal
  /// ones count once. None: usual_rows(), whose blocks only shorten the search, so polishing may cut them
  /// (polish_boundaries::of_layers).
  std::vector<decompose::any_decomposition> rows = {};
  std::optional<any_step_law> law = {};  ///< whose latency is minimised; none: the dominant step's
  partition::any_device_ordering orders = partition::affordable_orders{};
  int k = 20;  ///< partial plans per cell, and plans per search that the simulator judges
  int max_stages = 16;
  int threads = 1;  ///< for the searches of a row, side by side; 0: as many as the machine runs at once; no answer depends on them
  polish_options polish = {};  ///< of the best plans found
  /// Plans of the problem's job that are known already, each with what is predicted of it: they compete, and the best are polished.
  /// One that the search finds, too, counts as found.
  std::vector<plan> known = {};
};

/// For every microbatch size, device order and warm-up rule: the K best plans under the dominant-step estimate, which
/// relaxes contention; the simulator, which knows it, ranks them all; the best ones are polished under it.
///
/// An objective that is not monotone in (response, energy) cannot steer the search: then latency does, and the
/// objective ranks what is found.
///
/// @return     none found: the limit that binds in the plan that comes nearest, on which device, by how much. Stopped: the budget
///             of the problem was spent.
/// Complexity  B sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP;
///             lower warm-ups compete instead of coming last, and are lowered only as far as memory asks; beside
///             Dora's two substates a row whose stages may cross chains, without which it loses up to 3.4 x
///             (docs/reproduction/dora.md), and a finer one in the model's own numbering; polishing.
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                           const partitioner_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                           const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora_partitioner.ipp>
#endif
