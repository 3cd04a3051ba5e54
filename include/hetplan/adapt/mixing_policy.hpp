// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The policy for work with a deadline: mixes plans so that it ends in time with least energy.

#include <optional>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

struct mixing_options {
  policy_options common = {};
  mix::progress_options progress = {};
  mix::any_mixing_controller mixing = mix::exact_mixing{};
};

/// Uniform progress over the plans of a Pareto set: what they do under present conditions gives their rates, delta
/// migrations between them the costs of switching; the controller says which one runs, and for how long.
///
/// A small change of the conditions has the transfers of the running plan scheduled anew, and nothing else. After any other,
/// rates and costs are looked up again, and the controller is asked anew, also where its turns run in open loop. If no mixture ends in
/// time, the transfers of the fastest plans are scheduled anew, and if that does not help either the planner is asked for plans for the
/// moment; where asking will not pay (plan_search), only the plan that runs next is scheduled.
///
/// With a deadline a latency is not looked at.
/// Needs   qoe.deadline and qoe.iterations in what is wanted; a planner that answers a menu (known_plans.hpp).
/// Source  Dora, section 4.3, eqs 7-8 and uniform progress.
class mixing_policy {
 public:
  mixing_policy(const planning_problem& problem, any_planner planner, mixing_options options = {});
  mixing_policy(const planning_problem&& the_problem_must_outlive_it, any_planner, mixing_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  static constexpr double shortest_s = 1e-3;
  static constexpr double out_of_reach_s = 1e12;  ///< a switch to a plan whose weights are missing

  struct question {
    double now_s;
    long long done;
    mix::decision answer;
  };

  [[nodiscard]] static bool is_late(const mix::decision& d) { return !d.status.ok() || d.mixture.shortfall > 0; }

  /// Iterations are whole, and plans change between them: the last turn may begin one iteration late.
  [[nodiscard]] mix::decision decide(const situation& s, std::optional<std::size_t> running) const;
  void take(const plan_result& r);
  /// Rates and switching costs under present conditions.
  void look_up(const situation& s, std::optional<std::size_t> running);

  const planning_problem* problem_;
  mixing_options options_;
  known_plans known_;
  plan_search plan_;
  std::vector<plan> menu_;  ///< the planner's last answer: not to be forgotten
  change_classifier changes_;
  mix::uniform_progress controller_;
  std::optional<std::size_t> running_;
  std::optional<question> begun_;  ///< the last one; nothing: a horizon begins
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/mixing_policy.ipp>
#endif
