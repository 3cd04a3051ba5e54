// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's runtime adapter (phase 3): mixes plans for work with a deadline, and uses the reaction ladder for continuous work.

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

struct mixing_options {
  policy_options common = {};
  mix::progress_options progress = {};
  mix::any_mixing_controller mixing = mix::exact_mixing{};
};

/// Policy for work with a deadline: uniform progress over the plans of a Pareto set, with the least energy. The plans' behaviour under
/// present conditions gives their rates, delta migrations the switching costs; the controller chooses the running plan and its time.
///
/// After a small change of conditions only the transfers of the running plan are rescheduled. After any other change, rates and costs are
/// updated and the controller decides anew, even if its turns run in open loop. If no mixture meets the deadline, the transfers of the
/// fastest plans are rescheduled, and then the planner is asked for plans for the moment; if asking does not pay (plan_search), only the
/// next plan is rescheduled. Latency limits are ignored.
///
/// Needs   qoe.deadline and qoe.iterations in the situation's wishes; a planner that returns a menu (known_plans.hpp).
/// Source  Dora, section 4.3, eqs 7-8 and uniform progress.
class mixing_policy {
 public:
  mixing_policy(const planning_problem& problem, any_planner planner, mixing_options options = {});
  mixing_policy(const planning_problem&& the_problem_must_outlive_it, any_planner, mixing_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  static constexpr double shortest_s = 1e-3;
  static constexpr double out_of_reach_s = 1e12;  ///< cost of a switch to a plan whose weights are missing

  struct question {
    double now_s;
    long long done;
    mix::decision answer;
  };

  [[nodiscard]] static bool is_late(const mix::decision& d) { return !d.status.ok() || d.mixture.shortfall > 0; }

  /// Returns the controller's decision with a margin: plans change between whole iterations, so the last turn may start an iteration late.
  [[nodiscard]] mix::decision decide(const situation& s, std::optional<std::size_t> running) const;
  void take(const plan_result& r);
  /// Updates rates and switching costs to present conditions.
  void look_up(const situation& s, std::optional<std::size_t> running);

  const planning_problem* problem_;
  mixing_options options_;
  known_plans known_;
  plan_search plan_;
  std::vector<ranked_plan> menu_;  ///< the planner's last answer, which must not be forgotten
  change_classifier changes_;
  mix::uniform_progress controller_;
  std::optional<std::size_t> running_;
  std::optional<question> begun_;  ///< last question of the current horizon; nothing: a new horizon begins
};

}  // namespace hetplan::adapt

namespace hetplan::recipes {

/// Dora as a planner for policies: the `keep` best plans for the problem's job.
struct dora_planner {
  int keep = 10;
  dora_options options = {};

  [[nodiscard]] plan_result operator()(const planning_problem& problem) const {
    return dora(problem, objective_of_job(problem.job), keep, options);
  }
  /// Plans from `known` plans for the same devices on another network, which compete and are polished beside a narrow search.
  /// Source  ours; it takes half to four fifths of the time and finds equally good plans.
  [[nodiscard]] plan_result operator()(const planning_problem& problem, std::span<const plan> known) const;
};

struct dora_adapter_options {
  dora_planner planner = {};
  adapt::ladder_options ladder = {};
  adapt::mixing_options mixing = {};
};

/// Dora's adaptation policy: mixes plans if the job names a deadline and its iterations, and so can be interrupted; else the ladder.
/// Source  Dora, section 4.3. Deviations: those of its two parts.
class dora_adapter {
 public:
  /// The problem must outlive the adapter.
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
