// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Weights of a plan in the tiers of its devices, where their memory is too small.

#include <optional>

#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Returns the plan with the weights that its devices' memories do not hold in their tiers; nothing if these cannot make room.
///
/// Each device frees what it lacks at the least time added to its work in the whole run (cheapest_tiers), a tensor of several of its layers
/// in all of them. A stage of several devices, each of which has no other, offloads the same layers on all: as many bytes as the device
/// that lacks most needs, at the time of the one that takes longest. Devices of other stages get no relief. A tier with a resource counts
/// as if its device had it alone. In training what is trained stays in memory.
///
/// @param p            without weights in tiers.
/// @param e            of p, which may break limits of memory.
/// Complexity          O(layers x devices of their stage x passes) queries of the cost model, and cheapest_tiers for each device.
/// Determinism         of equal layers those with the least ids move.
/// Source              ours.
[[nodiscard]] std::optional<plan> fit_offload(const planning_problem& problem, const plan& p, const evaluation& e);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/fit_offload.ipp>
#endif
