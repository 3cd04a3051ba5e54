// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Reference policies: no change, network schedule only, re-planning at every change, and an oracle.

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
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Returns the distance in steps of 10 %: the largest ratio of two speeds or capacities less 1; infinite between 0 and more.
[[nodiscard]] double distance(const conditions& a, const conditions& b);

/// Calls a planner when that may pay; otherwise returns its result for the most similar conditions.
///
/// Conditions that round to the same values count as one moment. A search is *futile* if it improves on the known plans by less than 1 %.
/// The next search then waits `first_wait` steps, twice as many after each further futile search in a row. A call under other conditions
/// counts as one step for each 10 % of distance from those that were tried, at most 8. So do ten seconds, so that lasting conditions are
/// answered. A successful search ends the waiting. Every set of working devices and every target has a wait of its own, and a deadline that
/// comes within reach ends it. While nothing can run, no wait is longer than 8 steps.
///
/// With a deadline, the planner is called for all iterations at the pace that the remaining ones need, rounded up like conditions.
///
/// Complexity   O(moments) for a look-up; a search takes the planner's time and a simulation of each known plan.
/// Determinism  yes: it counts calls and the seconds of the timeline.
/// Source       ours. Dora, section 5, asks for no new partition within 10 %.
class plan_search {
 public:
  static constexpr double first_wait = 2, longest_wait = 1024;
  static constexpr std::size_t most_moments = 32, most_records = 16;

  plan_search(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory = {});
  plan_search(const planning_problem&& the_problem_must_outlive_it, any_planner, std::shared_ptr<planning_memory> = {}) = delete;

  /// True if the planner would be called now. Check this before work that costs as much as a search.
  [[nodiscard]] bool may_pay(const situation& s, const qoe_target& wanted);
  /// Returns when the last suppressed search would run if nothing changes; empty if none was suppressed.
  [[nodiscard]] std::optional<seconds> ask_again() const { return ask_again_; }

  /// Returns plans in the numbering of the whole cluster, best first when they were found. A search adds its plans to `known`,
  /// which may forget them: evaluate a remembered result again before using it.
  [[nodiscard]] const plan_result& operator()(known_plans& known, const situation& s, const qoe_target& wanted);

 private:
  static constexpr double farthest = 8;     ///< most steps of one call
  static constexpr double most_paces = 12;  ///< rounding steps either way: a tenth, or ten times
  static constexpr seconds a_step{10};

  struct moment {
    adapt::conditions conditions;
    plan_result answer;
    double pace_s;  ///< time for an iteration until the deadline; infinite without one
  };
  /// The searches for one set of working devices and one target.
  struct search_record {
    std::vector<char> works;
    qoe_target wanted;
    std::list<moment> moments = {};  ///< latest first
    double wait = 0, steps = 0;
    seconds since = {};    ///< time of the last search
    conditions last = {};  ///< conditions of the last call
  };

  [[nodiscard]] static double step(const search_record& record, const conditions& now, double d) {
    return record.last == now ? 0 : std::min(d, farthest);
  }
  [[nodiscard]] static double lasted(const search_record& record, const situation& s) { return (s.now - record.since) / a_step; }

  [[nodiscard]] static bool is_better(const serving& a, const serving& b);
  [[nodiscard]] static double pace(const qoe_target& left);
  /// True if all plans were late, so only the fastest were searched for, and there is now time for others.
  [[nodiscard]] static bool outgrown(const moment& m, const qoe_target& left);
  /// Returns the job's target at the pace that is left, rounded up to one of few values: plans should serve until the deadline.
  [[nodiscard]] static qoe_target left_of(qoe_target wanted, const situation& s);
  [[nodiscard]] search_record& record_of(const conditions& now, const qoe_target& wanted);
  [[nodiscard]] static const moment* nearest(const search_record& record, const conditions& now);

  const planning_problem* problem_;
  replanning plan_;
  std::list<search_record> records_;  ///< latest first
  std::optional<seconds> ask_again_;
};

/// The size of a change, by the reaction that it requires.
enum class change_size {
  none,   ///< no reaction
  small,  ///< the same plan, possibly with reordered transfers
  large   ///< possibly another plan
};

/// Separates large changes from small ones and from noise. It has state: call it at every `react`.
///
/// *Large*: the first call; conditions that differ by `small` or more (adapt::change, a ratio) from those of the last large change,
/// so that many small changes in one direction add up; different foreign traffic (senders, receivers and priorities, not remaining
/// bytes); different targets; a running plan that cannot run; a dropped decision.
/// *Small*: any other change of the conditions by `ignore` or more since the last change that was not `none`.
///
/// Complexity   O(devices + resources + traffic) per call.
/// Throws       invalid_input (`small` or `ignore` negative or not finite).
/// Determinism  equal calls in equal order get equal results; no clock is read.
/// Source       Dora, section 5: within 10 % only the network's schedule is adjusted. All else, the reference included, is ours.
class change_classifier {
 public:
  explicit change_classifier(const policy_options& o);

  /// Returns the size of the change since earlier calls.
  [[nodiscard]] change_size classify(const situation& s);

 private:
  double large_, ignore_;
  std::optional<conditions> answered_, last_;
  std::vector<std::tuple<device_id, device_id, int>> traffic_;
  qoe_target wanted_;
};

/// Runs one plan under all conditions.
/// Source  "best single plan" of Dora, Fig 12.
class static_plan {
 public:
  explicit static_plan(plan first) : first_(std::move(first)) {}
  [[nodiscard]] reaction react(const situation& s) const;

 private:
  plan first_;
};

/// Keeps the placement and reschedules the transfers when conditions change.
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

/// Re-plans at every large change and adopts the result, however small the gain, like planners without a runtime. After long futile
/// planning it plans less often (plan_search) and runs the best of the last result for similar conditions. A result that is no
/// better than the running plan is ignored and cancels a plan that is coming.
///
/// Source  Dora, section 4.3, which replaces this policy.
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

/// Knows every change as it happens and at once runs, at no cost, the best of all remembered plans and of the planner's plans where
/// a search may pay (plan_search). Except for luck, an upper bound for other policies with this planner. It is no bound for jobs
/// with a deadline, whose future it does not know (mix::clairvoyant).
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
