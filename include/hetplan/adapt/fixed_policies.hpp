// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The policies that others are compared with: never change, change the network's schedule only, always re-plan, and know
/// everything at no cost.

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/replanning.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

// When asking the planner again may pay: what was tried under which conditions, and what it brought.

/// How far conditions are from others, in parts of 10 %: the largest factor between two speeds or capacities; infinite between 0
/// and more.
[[nodiscard]] double distance(const conditions& a, const conditions& b);

/// Asks a planner where that may pay, and says what it answered for the most similar moment where it may not.
///
/// Moments whose rounded conditions are the same are one. A search that brings nothing better than the plans that are known
/// already, by 1 %, is *futile*, and the next one waits: `first_wait` steps, after each futile one in a row twice as many. A question about
/// other conditions is a step for each 10 % that they are away from what was tried, 8 at most; and so are ten seconds, so that what
/// lasts is answered. A search that helps ends the waiting; another set of devices that work and other targets each have a waiting
/// of their own, and a deadline that comes in reach ends it. While nothing can run, no wait is longer than 8 steps.
///
/// With a deadline it is asked for the pace that is left: for all iterations in the time in which they would have to be done to end the
/// rest in time, rounded up as conditions are rounded.
///
/// Complexity   O(moments) to look one up; a search is the planner's, and a simulation of each known plan.
/// Determinism  yes: it counts questions and the seconds of the timeline.
/// Source       ours. Dora, section 5, asks for no new partition within 10 %.
class plan_search {
 public:
  static constexpr double first_wait = 2, longest_wait = 1024;
  static constexpr std::size_t most_moments = 32, most_records = 16;

  plan_search(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory = {});
  plan_search(const planning_problem&& the_problem_must_outlive_it, any_planner, std::shared_ptr<planning_memory> = {}) = delete;

  /// Would the planner be asked now? To be called before what is as dear as a search.
  [[nodiscard]] bool may_pay(const situation& s, const qoe_target& wanted);
  /// When the last question that was not passed on would be, if nothing changes until then.
  [[nodiscard]] std::optional<seconds> ask_again() const { return ask_again_; }

  /// Plans of the whole cluster's numbering, best first when they were found. Those of a search are known from then on, until they
  /// are forgotten: who takes a remembered answer tries it anew.
  [[nodiscard]] const plan_result& operator()(known_plans& known, const situation& s, const qoe_target& wanted);

 private:
  static constexpr double farthest = 8;     ///< steps of one question
  static constexpr double most_paces = 12;  ///< either way: a tenth, or ten times
  static constexpr seconds a_step{10};

  struct moment {
    adapt::conditions conditions;
    plan_result answer;
    double pace_s;  ///< what an iteration may take until the deadline; infinite without one
  };
  /// What was searched for while the same devices worked, for one wanted QoE.
  struct search_record {
    std::vector<char> works;
    qoe_target wanted;
    std::list<moment> moments = {};  ///< the last first
    double wait = 0, steps = 0;
    seconds since = {};    ///< the last search
    conditions last = {};  ///< that were asked about
  };

  [[nodiscard]] static double step(const search_record& record, const conditions& now, double d) {
    return record.last == now ? 0 : std::min(d, farthest);
  }
  [[nodiscard]] static double lasted(const search_record& record, const situation& s) { return (s.now - record.since) / a_step; }

  [[nodiscard]] static bool is_better(const serving& a, const serving& b);
  [[nodiscard]] static double pace(const qoe_target& left);
  /// When all plans were late only the fastest were looked for; now there may be time for others.
  [[nodiscard]] static bool outgrown(const moment& m, const qoe_target& left);
  /// The job at the pace that is left to it, rounded up to one of few: the planner is asked for what serves until the deadline.
  [[nodiscard]] static qoe_target left_of(qoe_target wanted, const situation& s);
  [[nodiscard]] search_record& record_of(const conditions& now, const qoe_target& wanted);
  [[nodiscard]] static const moment* nearest(const search_record& record, const conditions& now);

  const planning_problem* problem_;
  replanning plan_;
  std::list<search_record> records_;  ///< the last first
  std::optional<seconds> ask_again_;
};

// Which changes call for another plan, which for other transfers, and which for nothing.

/// What a change calls for.
enum class change_size {
  none,   ///< nothing
  small,  ///< the same plan, perhaps with its transfers in another order
  large   ///< another plan, perhaps
};

/// Tells large changes from small ones and from noise. Ask it at every call of `react`: it remembers what it was asked.
///
/// *Large*: the first question; conditions that differ by `small` or more (adapt::change, a ratio) from those of the last large
/// change, so that many small changes one way add up to a large one; other foreign traffic (who sends to whom, at which priority;
/// not how much is left); another QoE wanted; a running plan that cannot run, or a decision that was dropped.
/// *Small*: any other change of the conditions by `ignore` or more since the last change that was not none.
///
/// Complexity   O(devices + resources + traffic) a question.
/// Throws       invalid_input (`small` or `ignore` negative or not finite).
/// Determinism  the same questions in the same order get the same answers; it reads no clock.
/// Source       Dora, section 5: within 10 % only the network's schedule is adjusted. What it is measured against, and all but the
///              conditions, is ours.
class change_classifier {
 public:
  explicit change_classifier(const policy_options& o);

  /// Is there anything to answer?
  [[nodiscard]] change_size classify(const situation& s);

 private:
  double large_, ignore_;
  std::optional<conditions> answered_, last_;
  using traffic_list = std::vector<std::tuple<device_id, device_id, int>>;
  [[nodiscard]] static traffic_list list(std::span<const foreign_traffic> traffic);
  traffic_list traffic_;
  qoe_target wanted_;
};

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

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/fixed_policies.ipp>
#endif
