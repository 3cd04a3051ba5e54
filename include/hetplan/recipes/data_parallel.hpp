// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Data parallel: the whole model on every device, samples in proportion to what each can do.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// One stage on all devices; shares by partition::allocate within memory, and where nothing fits without
/// regard to memory, so that the judge can say what overflows.
///
/// Source  data parallelism with uneven shares, as EDDL in Asteroid, section 5.1.
[[nodiscard]] plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                        const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/data_parallel.ipp>
#endif
