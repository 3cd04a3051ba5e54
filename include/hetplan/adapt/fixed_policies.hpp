// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The policies that others are compared with: never change, change the network's schedule only, always re-plan, and know
/// everything at no cost.

#include <utility>

#include <hetplan/adapt/change_classifier.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/plan_search.hpp>
#include <hetplan/adapt/policy_options.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Runs one plan, come what may.
///
/// Source  "best single plan" of Dora, Fig 12.
class static_plan {
 public:
  explicit static_plan(plan first) : first_(std::move(first)) {}
  [[nodiscard]] reaction react(const situation& s) const;

 private:
  plan first_;
};

/// Keeps who computes what, and schedules the transfers anew when conditions change.
///
/// Source  Dora, section 4.3, phase 2 alone.
class network_only {
 public:
  network_only(const planning_problem& problem, plan first, policy_options options = {});
  network_only(const planning_problem&& the_problem_must_outlive_it, plan, policy_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  policy_options options_;
  known_plans known_;
  change_classifier changes_;
};

/// Plans anew at every change that is not small and switches to the answer, however little it is better: what planners without a
/// runtime do. Where planning has brought nothing for long it plans less often (plan_search), and runs the best of the last
/// answer for such a moment. An answer that is no better than the running plan is none, and calls off a plan that is coming.
///
/// Source  Dora, section 4.3, which replaces it.
class replan_always {
 public:
  replan_always(const planning_problem& problem, any_planner planner, policy_options options = {});
  replan_always(const planning_problem&& the_problem_must_outlive_it, any_planner, policy_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  policy_options options_;
  known_plans known_;
  plan_search plan_;
  change_classifier changes_;
};

/// Knows every change as it happens, and at once runs the best of all plans it remembers and of those that the planner finds
/// for the moment where asking it may pay (plan_search), at no cost. What the others could reach at most with this planner, but for
/// luck; not a bound for jobs with a deadline, whose future it does not know (clairvoyant.hpp).
///
/// Source  the "optimal oracle" of Dora, section 6.3, Fig 16.
class oracle {
 public:
  oracle(const planning_problem& problem, any_planner planner, policy_options options = {});
  oracle(const planning_problem&& the_problem_must_outlive_it, any_planner, policy_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  policy_options options_;
  known_plans known_;
  plan_search plan_;
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/fixed_policies.ipp>
#endif
