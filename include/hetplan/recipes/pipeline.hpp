// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Pipelines of balanced stages of consecutive layers on single devices, within memory; one device alone; even splits.

#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

// Data parallelism: the whole model on every device, with equal or proportional shares of samples.

namespace detail {

/// Returns the plan of one stage with all layers on all devices, with equal shares; the first devices take the remainder.
///
/// @param size  samples of a microbatch, at least one for each device.
[[nodiscard]] plan even_replicas(const planning_problem& problem, const char* planner, int size, sharding shard);

}  // namespace detail

/// PyTorch's DistributedDataParallel: one stage on all devices with equal shares of each microbatch, whatever their speeds (the first
/// devices take the remainder); gradients are reduced in a ring at the end of an iteration.
///
/// @return     none_found if the batch has fewer samples than the cluster devices.
/// Complexity  one judgement per microbatch size.   Throws  invalid_input (keep < 1).   Determinism  yes, except for `elapsed`.
/// Source      PyTorch's DistributedDataParallel (Li et al., 2020). Deviation: no reduction starts before the last backward has ended.
[[nodiscard]] plan_result ddp(const planning_problem& problem, const any_objective& objective, int keep = 10,
                              const candidate_observer& observer = {});

/// ddp with sharded gradients and optimizer state: scattered after each microbatch, weights gathered at the end.
///
/// @return     as ddp; also none_found outside training.   Complexity, Throws, Determinism  as ddp.
/// Source      ZeRO (Rajbhandari et al., 2020), stage 2. Units are layers.
[[nodiscard]] plan_result zero2(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                const candidate_observer& observer = {});

/// ddp with sharded weights, too, which are gathered before each use.
///
/// @return     as zero2.   Complexity, Throws, Determinism  as ddp.
/// Source      PyTorch FSDP (Zhao et al., 2023). Units are layers; one is gathered ahead.
[[nodiscard]] plan_result fsdp(const planning_problem& problem, const any_objective& objective, int keep = 10,
                               const candidate_observer& observer = {});

/// One stage on all devices, with shares by partition::allocate within memory. If nothing fits, memory is ignored, so that the judge can
/// report the overflow.
/// Source  data parallelism with uneven shares, as EDDL in Asteroid, section 5.1.
[[nodiscard]] plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                        const candidate_observer& observer = {});

/// On-device: the whole model on each device alone, with every microbatch size, without communication.
/// Source  the baseline "on-device" of Asteroid, section 5.1.
[[nodiscard]] plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                    const candidate_observer& observer = {});

namespace detail {

/// As `pipeline`, for these orders of devices alone and at least `fewest` stages; a cut may skip some of an order.
[[nodiscard]] plan_result pipeline_in(const planning_problem& problem, const any_objective& objective, int keep,
                                      const std::vector<std::vector<device_id>>& orders, const candidate_observer& observer,
                                      int fewest = 1);

}  // namespace detail

/// Balanced pipelines: the largest step, a stage or both transfers of a boundary at peak bandwidth, is minimal. Stages take devices, with
/// gaps, in the cluster's order and by speed; the objective chooses by the judge's results. No other order is
/// tried: list the devices in the order that you want.
///
/// Complexity  O(B O Q N^2 L^2) for B microbatch sizes, O orders, Q <= 16 stages, N devices, L cut positions.
/// Determinism  ties: the cluster's order.
/// Source      balanced contiguous partitioning as in GPipe and PipeDream, judged under contention; the orders are our own.
[[nodiscard]] plan_result pipeline(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                   const candidate_observer& observer = {});

/// Even split, the start of an ablation: consecutive layers, one stage per device in the cluster's order, with the least largest forward
/// FLOP of a stage. Device speeds and network are ignored.
///
/// @return     none_found if no such cut fits, or if the model has fewer layers than the cluster devices.
/// Complexity  O(B O Q N^2 L^2) for B microbatch sizes, O orders, Q <= 16 stages, N devices, L cut positions.
/// Source      the partition that Dora's ablation (Fig 14) uses for its scheduler alone.
[[nodiscard]] plan_result even_split(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                     const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/pipeline.ipp>
#endif
