// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Data parallelism: the whole model on every device, with equal or proportional shares of samples.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

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

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/data_parallel.ipp>
#endif
