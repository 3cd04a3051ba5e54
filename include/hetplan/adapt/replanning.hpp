// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The planner of a policy, asked for the problem of the moment; and what it answered.

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

/// Optional: it answers sooner where plans are known that are good on the same devices over another network.
template <class P>
concept plans_from_known = requires(const P& p, const planning_problem& problem, std::span<const plan> known) {
  { p(problem, known) } -> std::same_as<plan_result>;  // as without them; they need not be of use, nor fit
};

/// What policies and service times ask for a plan, again and again: any recipe behind a callable.
///
/// * Cluster, cost model and job are those of the moment: the devices that are there, as fast as they are, on the network as it is. The
///   job says what is wanted (`objective_of_job`). Devices have other numbers there than in the whole; who asks translates.
/// * Traffic of others is no part of a problem: the planner sees the capacity that one more transfer would get beside it.
/// * A planner may also take plans that are known to be good on the same devices over another network (plans_from_known). `replanning`
///   then asks it in full once for each set of devices and speeds, and from those plans for any other network.
/// * `replanning` asks once for all moments that are alike; policies that ask the same planner can share a `planning_memory`. Nobody
///   times the planner: what planning takes is the policy's `thinking_times`.
///
/// Ships: `recipes::dora_planner` (searches less beside known plans, in a third of the time), `plan_menu` (plans from the fastest to the
/// most frugal, which `mixing_policy` wants, from a planner of single plans), `any_planner` (chosen at run time). A recipe of one's own:
/// docs/how-to/add-a-planner.md.
template <class P>
concept planner = plans_problem<P>;

template <class P>
consteval bool check_planner() {
  static_assert(plans_problem<P>, "a planner needs: hetplan::plan_result operator()(const hetplan::planning_problem&) const");
  return planner<P>;
}

/// Holds any planner by value. Of an empty one: invalid_input.
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
  /// One that makes no use of known plans answers as without them.
  [[nodiscard]] plan_result operator()(const planning_problem& problem, std::span<const plan> known) const {
    return plan_from_ ? plan_from_(problem, known) : plan_(problem);
  }
  [[nodiscard]] bool uses_known_plans() const { return plan_from_ != nullptr; }

 private:
  std::function<plan_result(const planning_problem&)> plan_;
  std::function<plan_result(const planning_problem&, std::span<const plan>)> plan_from_;
};

/// A planner's last answers, by the moments that it was asked for. Policies that ask the same planner about the same problem may
/// share one; it changes nothing but how often the planner works.
///
/// Source  ours.
class planning_memory {
 public:
  static constexpr std::size_t most = 64;

  /// How often the planner was asked.
  [[nodiscard]] long long plannings() const { return plannings_; }
  [[nodiscard]] std::size_t size() const { return answers_.size(); }

  [[nodiscard]] const plan_result* find(const std::vector<double>& moment);
  /// Valid until as many others have been kept.
  const plan_result& keep(std::vector<double> moment, plan_result r);

 private:
  struct answer {
    std::vector<double> moment;
    plan_result result;
  };
  std::list<answer> answers_;  ///< the last one used first
  long long plannings_ = 0;
};

/// A planner asked for the problem of the moment, in rounded conditions: moments that are alike are planned once, while they are
/// remembered.
///
/// Where it makes use of known plans, it is asked in full for the devices of the moment and their speeds on the network as the cluster
/// describes it, and from these plans for any other network: so an answer is the same whatever else was asked for before.
class replanning {
 public:
  /// @param memory  none: one of its own.
  replanning(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory = {});
  replanning(const planning_problem&& the_problem_must_outlive_it, any_planner, std::shared_ptr<planning_memory> = {}) = delete;

  /// Plans of the whole cluster's numbering, best first, without bounds; infeasible where no device works.
  /// Throws  invalid_input where the planner's answer has a plan of something else than it was asked for.
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
