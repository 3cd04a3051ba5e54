// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planners that policies call for current conditions, and a memory of their results.

#include <concepts>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

template <class P>
concept plans_problem = requires(const P& p, const planning_problem& problem) {
  { p(problem) } -> std::same_as<plan_result>;  // plans of that problem, best first; deterministic
};

/// Optional: a planner that is faster if it knows good plans for the same devices on another network.
template <class P>
concept plans_from_known = requires(const P& p, const planning_problem& problem, std::span<const plan> known) {
  { p(problem, known) } -> std::same_as<plan_result>;  // the same guarantees; known plans may be useless or not fit
};

/// Plans a problem for policies and service times, again and again: any recipe behind a callable.
///
/// * Cluster, cost model and job are current: the present devices at their speeds on the current network. The job states the target
///   (`objective_of_job`). Devices are renumbered; the caller translates.
/// * Foreign traffic is no part of a problem: the planner sees the capacity that one more transfer would get beside it.
/// * A planner may also take known plans that are good on the same devices over another network (plans_from_known). `replanning` then
///   calls it without plans once for each set of devices and speeds, and with those plans for any other network.
/// * `replanning` plans once for all similar conditions; policies with the same planner can share a `planning_memory`. Planners are not
///   timed: the planning time is the policy's `thinking_times`.
///
/// Ships: `recipes::dora_planner` (searches less beside known plans, in a third of the time), `plan_menu` (plans from the fastest to the
/// most frugal, for `mixing_policy`, from a planner of single plans), `any_planner` (run-time choice). See docs/how-to/add-a-planner.md.
template <class P>
concept planner = plans_problem<P>;

template <class P>
consteval bool check_planner() {
  static_assert(plans_problem<P>, "a planner needs: hetplan::plan_result operator()(const hetplan::planning_problem&) const");
  return planner<P>;
}

/// A type-erased planner, held by value. An empty callable throws invalid_input.
class any_planner {
 public:
  template <class P>
    requires(!std::same_as<P, any_planner>)
  any_planner(P planner) {
    static_assert(check_planner<P>());
    if constexpr (plans_from_known<P>) plan_from_ = planner;
    if constexpr (plans_problem<P>) plan_ = std::move(planner);
    require_function(plan_, "any_planner", "a planner");
  }
  [[nodiscard]] plan_result operator()(const planning_problem& problem) const { return plan_(problem); }
  /// Plans with known plans; a planner that does not use them ignores them.
  [[nodiscard]] plan_result operator()(const planning_problem& problem, std::span<const plan> known) const {
    return plan_from_ ? plan_from_(problem, known) : plan_(problem);
  }
  [[nodiscard]] bool uses_known_plans() const { return plan_from_ != nullptr; }

 private:
  std::function<plan_result(const planning_problem&)> plan_;
  std::function<plan_result(const planning_problem&, std::span<const plan>)> plan_from_;
};

/// The last results of a planner, by the conditions of the call. Policies with the same planner and problem may share one, which
/// only changes how often the planner works.
///
/// Source  ours.
class planning_memory {
 public:
  static constexpr std::size_t most = 64;

  [[nodiscard]] long long plannings() const { return plannings_; }
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

  [[nodiscard]] const plan_result* find(const std::vector<double>& moment);
  /// The reference is valid until as many other results have been kept.
  const plan_result& keep(std::vector<double> moment, plan_result r);

 private:
  struct answer {
    std::vector<double> moment;
    plan_result result;
  };
  std::list<answer> answers_;  ///< most recently used first
  long long plannings_ = 0;
};

/// Calls a planner for rounded conditions: similar conditions are planned once, while they are remembered.
///
/// A planner that uses known plans is called without any for the present devices at their speeds on the nominal network, and with the
/// resulting plans for any other network. So a result does not depend on earlier calls.
class replanning {
 public:
  /// @param memory  empty: a memory of its own.
  replanning(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory = {});
  replanning(const planning_problem&& the_problem_must_outlive_it, any_planner, std::shared_ptr<planning_memory> = {}) = delete;

  /// Returns plans in the numbering of the whole cluster, best first, without bounds; infeasible if no device works.
  /// Throws  invalid_input if a plan of the planner is for another problem.
  [[nodiscard]] const plan_result& operator()(const conditions& noticed, std::span<const foreign_traffic> traffic,
                                              const qoe_target& wanted);

 private:
  [[nodiscard]] const plan_result& answer(const conditions& now, const qoe_target& wanted);
  [[nodiscard]] plan_result plan_for(const conditions& now, const qoe_target& wanted);

  const planning_problem* problem_;
  any_planner planner_;
  std::shared_ptr<planning_memory> memory_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/replanning.ipp>
#endif
