// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipeline: balanced stages of consecutive layers on single devices, within memory.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

// On-device: the whole model on one device, the best of them.

/// Every device alone with every microbatch size; no communication.
///
/// Source  the baseline "on-device" of Asteroid, section 5.1.
[[nodiscard]] plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                    const candidate_observer& observer = {});

/// Balanced times: the largest step of a stage, or of both transfers of a boundary at peak bandwidth, is smallest. Stages take devices,
/// some left out, in the order in which the cluster lists them and in that of their speed (detail::by_forward_time); the objective
/// chooses, by the judge's numbers. No other order is tried: list the devices in the one that you mean.
///
/// Complexity  O(B O Q N^2 L^2) for B microbatch sizes, O orders, Q <= 16 stages, N devices, L cut positions.
/// Determinism ties: the cluster's order.
/// Source      balanced contiguous partitioning as in GPipe and PipeDream, judged under contention; the orders are our own.
[[nodiscard]] plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                   const candidate_observer& observer = {});

// Even split: a stage on every device, all of equal FLOP as far as memory allows. What an ablation starts from.

/// Consecutive layers, one stage per device in the cluster's order, so that the largest stage has as little forward FLOP as
/// possible. Sees neither
/// the devices' speeds nor the network.
///
/// @return     none found where no such cut fits, and where the model has fewer layers than the cluster devices.
/// Complexity  O(B O Q N^2 L^2) for B microbatch sizes, O orders, Q <= 16 stages, N devices, L cut positions.
/// Source      the partition that Dora's ablation (Fig 14) gives to its scheduler alone.
[[nodiscard]] plan_result even_split(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                     const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/pipeline.ipp>
#endif
