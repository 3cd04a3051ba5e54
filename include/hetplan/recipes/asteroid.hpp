// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Asteroid: hybrid pipeline parallelism for training on unequal edge devices.

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace hetplan::recipes {

/// How Asteroid searches its view.
inline const view_search asteroid_search{.warmups = {warmup_rule::hide_communication, warmup_rule::depth}, .memory_first = true};

/// Sees a chain, unequal devices with their memories, and bandwidths between pairs, each for both directions; no contention.
///
/// Dynamic program from the tail: a new head stage takes the next layers on the next devices, in the order of memory, largest
/// first; its samples go to devices so that the slowest ends first, within memory; the dominant step gives the latency.
/// Warm-up K_p = 2 (P - p) - 1, and P - p where nothing fits.
///
/// @return     one plan, the planner's choice.
/// Complexity  per microbatch size O(L^2 N^2 P) stages on L layers and N devices, before pruning.
/// Source      Asteroid, section 3.3, Algorithms 1 and 2, eqs. 3-7, 10, 11. Deviations: the exact state of the estimate
///             instead of one latency per cell, so that the answer is the optimum up to choose_on_view's cap; the ring of a
///             pair takes turns, too, which eq. 5 does not ask; see choose_on_view for the rest.
[[nodiscard]] inline plan_result asteroid(const planning_problem& problem, const any_objective& objective, int /*keep*/ = 1,
                                          const candidate_observer& observer = {}) {
  const planning_graph chain = chain_view(problem.model);
  const cluster view = uncontended(problem.cluster, duplex::half);  // eq. 6: activations and gradients take turns
  return plan_on_view(problem, objective, "asteroid", chain, view, asteroid_search, observer);
}

}  // namespace hetplan::recipes
