// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's runtime adapter (phase 3): a mixture of plans for work with a deadline, the reaction ladder for work that goes on.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/ladder.hpp>
#include <hetplan/mix/progress.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora.hpp>

namespace hetplan::adapt {

// The policy for work with a deadline: mixes plans so that it ends in time with least energy.

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

namespace hetplan::recipes {

/// Dora's phases 1 and 2 as a planner that policies can ask: the `keep` best plans for what the problem's job wants.
struct dora_planner {
  int keep = 10;
  dora_options options = {};

  [[nodiscard]] plan_result operator()(const planning_problem& problem) const {
    return dora(problem, objective_of_job(problem.job), keep, options);
  }
  /// From plans for the same devices on another network, which compete and are polished: the search beside them is narrow.
  ///
  /// Source  ours. It takes a third of the time and finds as good plans (docs/performance.md).
  [[nodiscard]] plan_result operator()(const planning_problem& problem, std::span<const plan> known) const;
};

struct dora_adapter_options {
  dora_planner planner = {};
  adapt::ladder_options ladder = {};
  adapt::mixing_options mixing = {};
};

/// An adaptation policy. A job that names a deadline and its iterations can be interrupted, and is mixed; any other goes on.
///
/// Source  Dora, section 4.3. Deviations: those of its two parts.
class dora_adapter {
 public:
  /// The problem must outlive it.
  explicit dora_adapter(const planning_problem& problem, dora_adapter_options options = {})
      : problem_(&problem), options_(std::move(options)) {}
  explicit dora_adapter(const planning_problem&& the_problem_must_outlive_it, dora_adapter_options = {}) = delete;

  [[nodiscard]] adapt::reaction react(const adapt::situation& s) {
    if (s.wanted.deadline && s.wanted.iterations) {
      if (!mixing_) mixing_.emplace(*problem_, adapt::plan_menu{options_.planner}, options_.mixing);
      return mixing_->react(s);
    }
    if (!ladder_) ladder_.emplace(*problem_, options_.planner, options_.ladder);
    return ladder_->react(s);
  }

 private:
  const planning_problem* problem_;
  dora_adapter_options options_;
  std::optional<adapt::mixing_policy> mixing_;
  std::optional<adapt::ladder> ladder_;
};

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/dora_adapter.ipp>
#endif
