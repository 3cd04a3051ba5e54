// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The second rung: the same plan, its transfers scheduled for the network of the moment. Nothing moves.

#include <optional>
#include <span>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/conditions.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/refine.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// The running plan with transfer rules for present conditions; nothing where it cannot run, now or for want of a way, or
/// breaks a limit.
///
/// @param p        of the whole cluster; rules that it has compete.
/// Complexity      that of schedule::refine for one plan.   Throws, Determinism  as it.
/// Source          Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<plan> reschedule(const planning_problem& problem, const plan& p, const conditions& noticed,
                                             std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                             const schedule::refine_options& options = {});

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/reschedule.ipp>
#endif
