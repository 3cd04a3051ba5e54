// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The answer to a small change: the running plan with its transfers in another order, where that serves better.

#include <optional>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/policy_options.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// A reaction on the rung `network`: the running plan, its transfers scheduled for the moment. Nothing where that finds no other
/// order, or none that serves the job's goal better.
///
/// @param known    takes in the running plan and the one found.
/// @param s        `s.running` must not be null.
/// @param options  `network` and `thinking.reschedule`.
/// Complexity  that of known_plans::reschedule and two of its simulations, if the moment is new.
/// Throws      as schedule::refine; invalid_input if nothing runs.
/// Determinism yes.
/// Source      Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                        const policy_options& options);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/reorder_transfers.ipp>
#endif
