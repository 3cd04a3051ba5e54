// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Data parallel: the whole model on every device, samples in proportion to what each can do.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

// What frameworks do with equal devices: the whole model on each, equal shares of samples, state whole or in parts.

/// One stage on all devices, as many samples of each microbatch for each of them (one more for the first ones where they do not divide),
/// whatever they can do; gradients in a ring at the end of an iteration.
///
/// @return     none found where the batch has fewer samples than the cluster devices.
/// Complexity  a judgement for every microbatch size.   Throws  invalid_input (keep < 1).   Determinism  yes, but for `elapsed`.
/// Source      PyTorch's DistributedDataParallel (Li et al., 2020). Deviation: nothing is reduced before the last backward has ended.
[[nodiscard]] plan_result ddp(const planning_problem& problem, const any_objective& objective, int keep = 10,
                              const candidate_observer& observer = {});

/// The same with gradients and optimizer in parts: scattered after each microbatch, weights gathered at the end.
///
/// @return     as ddp; none found outside training, too.   Complexity, Throws, Determinism  as ddp.
/// Source      ZeRO (Rajbhandari et al., 2020), stage 2. Units are layers.
[[nodiscard]] plan_result zero2(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                const candidate_observer& observer = {});

/// The same with weights in parts, too: gathered before each use.
///
/// @return     as zero2.   Complexity, Throws, Determinism  as ddp.
/// Source      PyTorch FSDP (Zhao et al., 2023). Units are layers; one is gathered ahead.
[[nodiscard]] plan_result fsdp(const planning_problem& problem, const any_objective& objective, int keep = 10,
                               const candidate_observer& observer = {});

/// One stage on all devices; shares by partition::allocate within memory, and where nothing fits without
/// regard to memory, so that the judge can say what overflows.
///
/// Source  data parallelism with uneven shares, as EDDL in Asteroid, section 5.1.
[[nodiscard]] plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                        const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/data_parallel.ipp>
#endif
