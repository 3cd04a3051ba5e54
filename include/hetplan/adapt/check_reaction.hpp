// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Is what a policy answers an answer at all? Asked before anything moves.

#include <string>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

namespace detail {
/// Throws invalid_input where a plan is not one of the job; `who` comes before what is wrong.
void check_plan_of_policy(const plan& p, const planning_problem& problem, const std::string& who);
}  // namespace detail

/// Checks a policy's answer to a situation. Whether the devices of its plan are there is no part of it: they may leave later as well.
///
/// Complexity  that of validate, where it has a plan.
/// Throws      invalid_input: its plan is none of the job (validate; model and cluster by name, mode, context, tokens, optimizer,
///             batch), has a grid or a stage under zero2 or fsdp, or holds a transfer back beyond 10^9 s; invalid_model: a time that is no
///             number, negative or beyond 10^9 s, an event that has not happened yet, an enumerator that there is not.
/// Source      ours; semantics, section 10 (asking).
void check_reaction(const reaction& r, const planning_problem& problem, seconds now);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/check_reaction.ipp>
#endif
