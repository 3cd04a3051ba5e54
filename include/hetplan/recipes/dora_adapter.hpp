// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's runtime adapter (phase 3): a mixture of plans for work with a deadline, the reaction ladder for work that goes on.

#include <optional>
#include <span>
#include <utility>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/ladder.hpp>
#include <hetplan/adapt/mixing_policy.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/dora.hpp>

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

#ifndef HETPLAN_COMPILED
#include <hetplan/recipes/dora_adapter.ipp>
#endif
