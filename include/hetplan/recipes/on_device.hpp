// SPDX-License-Identifier: BSL-1.0
#pragma once
/// On-device: the whole model on one device, the best of them.

#include <hetplan/core/observer.hpp>
#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// Every device alone with every microbatch size; no communication.
///
/// Source  the baseline "on-device" of Asteroid, section 5.1.
[[nodiscard]] plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                    const candidate_observer& observer = {});

}  // namespace hetplan::recipes

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/on_device.ipp>
#endif
