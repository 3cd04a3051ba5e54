// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The plans that a policy knows, and their performance under given conditions.

#include <concepts>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>

namespace hetplan::adapt {

// Planners that policies call for current conditions, and a memory of their results.

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
/// Ships: `recipes::dora_planner` (searches less beside known plans, in half to four fifths of the time), `plan_menu` (plans from the
/// fastest to the most frugal, for `mixing_policy`, from a planner of single plans), `any_planner` (run-time choice). See
/// docs/how-to/add-a-planner.md.
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

/// Decision times on the timeline: round numbers near measurements (docs/performance.md, where a menu and the largest pipelines
/// take longer), so that a history does not depend on the machine.
///
/// Source  our own.
struct thinking_times {
  seconds reschedule{0.05};
  seconds choose{0.001};  ///< one of the known plans, or a mixture
  seconds replay{0.01};   ///< lightweight re-planning
  seconds replan{1};
};

/// Options that most policies share.
/// Source  Dora, section 5 (`small`); the rest is our own.
struct policy_options {
  double small = 0.1;  ///< smaller relative changes need only a new network schedule, no new partition (Dora, section 5)
  double ignore = 0;   ///< a smaller relative change is ignored; ours
  thinking_times thinking = {};
  schedule::refine_options network = {};
  std::size_t most_plans = 40;                   ///< remembered at most
  std::shared_ptr<planning_memory> memory = {};  ///< shared with policies that use the same planner; empty: its own
};

/// Returns the options after validation.
/// @param who  named by the error.
/// Throws  invalid_input that names the policy, the option, its value and what is expected.
[[nodiscard]] policy_options checked_options(policy_options o, const char* who);

/// A planner of many plans from one of single plans. It plans for least latency, for least energy, and for least energy within
/// latencies between these two, in equal ratios. The result is the Pareto set of all plans in (response, energy), fastest first. If
/// even the fastest plan misses the job's deadline, no further plans are requested.
///
/// Complexity  2 + `between` calls of the planner, or one.
/// Source      Dora, section 4.3: "the QoE-compliant, Pareto-optimal plans generated earlier". Their number is ours.
struct plan_menu {
  any_planner planner;
  int between = 4;

  /// Rounds to a relative 2^-20: the last digits of a power differ between libraries, and a search must not.
  [[nodiscard]] static double rounded(double x);

  [[nodiscard]] plan_result operator()(const planning_problem& problem) const;
};

/// Returns the running plan with transfer rules for current conditions; empty if it cannot run or breaks a limit.
/// @param p        of the whole cluster; its own rules compete.
/// Complexity      that of schedule::refine for one plan.   Throws, Determinism  as it.
/// Source          Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<plan> reschedule(const planning_problem& problem, const plan& p, const conditions& noticed,
                                             std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                             const schedule::refine_options& options = {});

/// Plans that can be simulated under any conditions. Results are remembered up to a limit: conditions may never recur.
/// Source  the plans that Dora's adapter keeps (section 4.3); simulating them again under new conditions is ours.
class known_plans {
 public:
  /// `problem` must outlive this object.
  explicit known_plans(const planning_problem& problem) : problem_(&problem) {}
  explicit known_plans(const planning_problem&& the_problem_must_outlive_it) = delete;

  /// Adds a plan unless it is known. Returns its index.  Throws  as tasks::expand.
  std::size_t add(plan p);
  /// Marks a plan as useful: such plans are forgotten last. Returns its index.
  std::size_t touch(std::size_t i);
  /// Forgets the plans beyond `most` that have been unused for longest. Returns true if the remaining plans have other indices.
  bool forget(std::size_t most);
  /// Adds the same plan with transfers rescheduled for the conditions (adapt::reschedule) and returns its index; empty if there is
  /// none.  Complexity: that of adapt::reschedule, if the conditions are new.
  std::optional<std::size_t> reschedule(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic,
                                        const qoe_target& wanted, const schedule::refine_options& options);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const plan& operator[](std::size_t i) const { return all_[i].runner.what(); }
  [[nodiscard]] std::span<const device_id> devices(std::size_t i) const { return all_[i].runner.devices(); }
  /// Returns the number of remembered results of all plans: at most 2 * `most_remembered` for each.
  [[nodiscard]] std::size_t remembered() const;
  static constexpr std::size_t most_remembered = 256;

  /// Returns the index of the plan that serves best, of all or of some; empty if none can run. Ties: the first.
  /// Complexity  that of try_out for each.
  [[nodiscard]] std::optional<std::size_t> best(const goal& wanted, const conditions& now, std::span<const foreign_traffic> traffic,
                                                std::optional<std::span<const ranked_plan>> among = {});

  /// Returns how well a plan serves.  Complexity: that of try_out.
  [[nodiscard]] serving serves(const goal& wanted, std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic);
  /// Simulates an iteration under constant conditions; infinite if the plan cannot run.  Complexity: one simulation, if it is new.
  [[nodiscard]] iteration try_out(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic);

 private:
  /// Returns the conditions that a plan depends on: its own devices and the network.
  [[nodiscard]] std::vector<double> conditions_of(std::size_t i, const conditions& now) const;

  static constexpr long long never_used = 1LL << 62;
  struct entry {
    plan_runner runner;
    std::map<std::vector<double>, iteration> seen;  ///< by conditions_of
    std::map<std::vector<double>, std::optional<std::size_t>> scheduled;
    long long used = 0;
  };

  const planning_problem* problem_;
  std::vector<entry> all_;
  long long uses_ = 0;
};

/// Returns a reaction on the rung `network`: the running plan with rescheduled transfers. Empty if no order serves the goal better.
/// @param known    gets the running plan and the new one.
/// @param s        `s.running` must not be null.
/// @param options  `network` and `thinking.reschedule`.
/// Complexity  that of known_plans::reschedule and two of its simulations, if the conditions are new.
/// Throws      as schedule::refine; invalid_input if nothing runs.
/// Determinism yes.
/// Source      Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                        const policy_options& options);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/known_plans.ipp>
#endif
