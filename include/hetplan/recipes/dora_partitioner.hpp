// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsens, decomposes into serial chains, searches both substates, ranks by simulation.

#include <optional>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/search/mend_limits.hpp>

namespace hetplan::recipes {

/// Returns joined_chains, serial_chains (Dora's two substates: pieces of one chain, runs of whole chains) and light_row.
[[nodiscard]] std::vector<decompose::any_decomposition> usual_rows();

struct partitioner_options {
  /// Sequences to cut, in turn. All but the first are searched only for the microbatch sizes of the best plans so far. Duplicates count
  /// once. Empty: usual_rows(), with polish_boundaries::of_layers, as their blocks only shorten the search.
  std::vector<decompose::any_decomposition> rows = {};
  std::optional<any_step_law> law = {};  ///< step law whose latency is minimised; none: the mode's dominant-step law
  partition::any_device_ordering orders = partition::affordable_orders{};
  int k = 20;  ///< partial plans per cell, and plans per search to simulate
  int max_stages = 16;
  int threads = 1;             ///< concurrent searches of a sequence; 0: as many as the hardware runs; results do not depend on it
  polish_options polish = {};  ///< for the best plans found
  /// Known plans of the problem's job. They compete, and the best are polished. A plan that the search finds, too, counts as found.
  std::vector<ranked_plan> known = {};
};

/// Searches the K best plans under the dominant-step estimate, which ignores contention, for every microbatch size, device order, warm-up
/// rule, and with and without recomputation where the job allows it; stages shard their states where it allows that; ranks them all by
/// simulation, which includes contention; and polishes the best ones under it. If the objective is not monotone in (response, energy), the
/// search minimises latency, and the objective ranks the plans found.
///
/// @return     none_found: the binding limit of the nearest plan, with device and excess. stopped: the problem's budget was spent.
/// Complexity  number of sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP; lower warm-ups compete
///             instead of coming last, and are lowered only as far as memory requires; beside Dora's two substates a sequence whose stages
///             may cross chains, without which plans are up to 3.4 x worse (docs/reproduction/dora.md), and a finer one in the model's
///             numbering; polishing.
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                           const partitioner_options& options, const candidate_observer& observer = {});
[[nodiscard]] plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                           const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora_partitioner.ipp>
#endif
