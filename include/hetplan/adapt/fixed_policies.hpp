// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The policies that others are compared with: never change, change the network's schedule only, always re-plan, and know
/// everything at no cost.

#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/plan_search.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// How long decisions take on the timeline: round numbers near what was measured (docs/performance.md, where a menu and the
/// largest pipelines take longer), so that a history does not depend on the machine that works it out.
struct thinking_times {
  seconds reschedule{0.05};
  seconds choose{0.001};  ///< among known plans, or a mixture of them
  seconds replay{0.01};   ///< lightweight re-planning
  seconds replan{1};
};

/// What most policies are told.
struct policy_options {
  double small = 0.1;  ///< a smaller relative change of the conditions needs no other partition: the network's schedule alone
                       ///< answers it (Dora, section 5)
  double ignore = 0;   ///< a smaller one is none at all; ours
  thinking_times thinking = {};
  schedule::refine_options network = {};
  std::size_t most_plans = 40;                   ///< that are remembered
  std::shared_ptr<planning_memory> memory = {};  ///< shared with others that ask the same planner; none: its own
};

/// The same options. Throws invalid_input naming the policy, the option, its value and what was expected.
[[nodiscard]] policy_options checked_options(policy_options o, const char* who);

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

namespace detail {

/// What a change calls for: nothing, other transfers, another plan.
enum class change_size { none, small, large };

/// Tells large changes from small ones and noise: conditions against those of the last large change, and for what is small of the
/// last change; traffic and targets against the last ones received.
class change_classifier {
 public:
  explicit change_classifier(const policy_options& o) : large_(std::max(o.small, o.ignore)), ignore_(o.ignore) {}
  /// Is there anything to answer? What is answered is remembered.
  [[nodiscard]] change_size classify(const situation& s);

 private:
  double large_, ignore_;
  std::optional<conditions> answered_, last_;
  using traffic_list = std::vector<std::tuple<device_id, device_id, int>>;
  [[nodiscard]] static traffic_list list(std::span<const foreign_traffic> traffic);
  traffic_list traffic_;
  qoe_target wanted_;
};

/// Phase two alone: the running plan with its transfers in an order that serves better now, where there is one.
[[nodiscard]] std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                        const policy_options& options);

}  // namespace detail

/// Keeps who computes what, and schedules the transfers anew when conditions change.
///
/// Source  Dora, section 4.3, phase 2 alone.
class network_only {
 public:
  network_only(const planning_problem& problem, plan first, policy_options options = {});

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  policy_options options_;
  known_plans known_;
  detail::change_classifier changes_;
};

/// Plans anew at every change that is not small and switches to the answer, however little it is better: what planners without a
/// runtime do. Where planning has brought nothing for long it plans less often (plan_search), and runs the best of the last
/// answer for such a moment. An answer that is no better than the running plan is none, and calls off a plan that is coming.
///
/// Source  Dora, section 4.3, which replaces it.
class replan_always {
 public:
  replan_always(const planning_problem& problem, any_planner planner, policy_options options = {});

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  policy_options options_;
  known_plans known_;
  plan_search plan_;
  detail::change_classifier changes_;
};

/// Knows every change as it happens, and at once runs the best of all plans it remembers and of those that the planner finds
/// for the moment where asking it may pay (plan_search), at no cost. What the others could reach at most with this planner, but for
/// luck; not a bound for jobs with a deadline, whose future it does not know (clairvoyant.hpp).
///
/// Source  the "optimal oracle" of Dora, section 6.3, Fig 16.
class oracle {
 public:
  oracle(const planning_problem& problem, any_planner planner, policy_options options = {});

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
