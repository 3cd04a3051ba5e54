// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What most policies are told: which changes are small, how long deciding takes, how many plans to remember.

#include <cstddef>
#include <memory>

#include <hetplan/adapt/replanning.hpp>
#include <hetplan/schedule/refine.hpp>

namespace hetplan::adapt {

/// How long decisions take on the timeline: round numbers near what was measured (docs/performance.md, where a menu and the
/// largest pipelines take longer), so that a history does not depend on the machine that works it out.
///
/// Source  our own.
struct thinking_times {
  seconds reschedule{0.05};
  seconds choose{0.001};  ///< among known plans, or a mixture of them
  seconds replay{0.01};   ///< lightweight re-planning
  seconds replan{1};
};

/// What most policies are told.
///
/// Source  Dora, section 5 (`small`); the rest is our own.
struct policy_options {
  double small = 0.1;  ///< a smaller relative change of the conditions needs no other partition: the network's schedule alone
                       ///< answers it (Dora, section 5)
  double ignore = 0;   ///< a smaller one is none at all; ours
  thinking_times thinking = {};
  schedule::refine_options network = {};
  std::size_t most_plans = 40;                   ///< that are remembered
  std::shared_ptr<planning_memory> memory = {};  ///< shared with others that ask the same planner; none: its own
};

/// The same options.
///
/// @param who  named by the error.
/// Throws  invalid_input naming the policy, the option, its value and what was expected.
[[nodiscard]] policy_options checked_options(policy_options o, const char* who);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/policy_options.ipp>
#endif
