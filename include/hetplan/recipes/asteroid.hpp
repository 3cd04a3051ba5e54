// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Asteroid: hybrid pipeline parallelism for training on unequal edge devices.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// Asteroid's search options.
inline const view_search asteroid_search{.warmups = {warmup_rule::hide_communication, warmup_rule::depth}, .memory_first = true};

/// Asteroid: hybrid pipelines by a dynamic program from the tail.
///
/// View: a chain, unequal devices with their memories, bandwidths between pairs, shared by both directions; no contention. A new head stage
/// takes the next layers on the next devices in order of memory, largest first. Its samples minimise the slowest device's time within
/// memory. The dominant step gives the latency. Warm-up is K_p = 2 (P - p) - 1, or P - p if nothing fits.
///
/// @return     one plan, the planner's choice.
/// Complexity  per microbatch size O(L^2 N^2 P) stages on L layers and N devices, before pruning.
/// Source      Asteroid, section 3.3, Algorithms 1 and 2, eqs. 3-7, 10, 11. Deviations: the exact state of the estimate in place of one
///             latency per cell, so the answer is optimal up to choose_on_view's cap; the transfers of a pair's ring take turns, too,
///             unlike eq. 5; see choose_on_view for the rest.
[[nodiscard]] inline plan_result asteroid(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                          const candidate_observer& observer = {}) {
  const cluster view = uncontended(problem.cluster, duplex::half);  // eq. 6: activations and gradients take turns
  return plan_on_view(problem, objective, "asteroid", chain_view(problem.model), view, asteroid_search, observer);
}

}  // namespace hetplan::recipes
