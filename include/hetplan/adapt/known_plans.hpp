// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a policy remembers: the plans it has met, and what they do under which conditions.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/replanning.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/schedule/transfer_scheduler.hpp>

namespace hetplan::adapt {

// What most policies are told: which changes are small, how long deciding takes, how many plans to remember.

/// How long decisions take on the timeline: round numbers near what was measured (docs/performance.md, where a menu and the
/// largest pipelines take longer), so that a history does not depend on the machine that works it out.
///
/// Source  our own.
struct thinking_times {
  seconds reschedule{0.05};
  seconds choose{0.001};  ///< among known plans, or a mixture of them
  seconds replay{0.01};   ///< lightweight re-planning
  seconds replan{1};
};

/// What most policies are told.
///
/// Source  Dora, section 5 (`small`); the rest is our own.
struct policy_options {
  double small = 0.1;  ///< a smaller relative change of the conditions needs no other partition: the network's schedule alone
                       ///< answers it (Dora, section 5)
  double ignore = 0;   ///< a smaller one is none at all; ours
  thinking_times thinking = {};
  schedule::refine_options network = {};
  std::size_t most_plans = 40;                   ///< that are remembered
  std::shared_ptr<planning_memory> memory = {};  ///< shared with others that ask the same planner; none: its own
};

/// The same options.
///
/// @param who  named by the error.
/// Throws  invalid_input naming the policy, the option, its value and what was expected.
[[nodiscard]] policy_options checked_options(policy_options o, const char* who);

// Many plans of one job from a planner of single ones: the fastest, the most frugal, and those between.

/// Asks a planner for least latency, for least energy, and for least energy within latencies between these two, in equal
/// ratios; the answer is the Pareto set of all plans in (response, energy), fastest first. Where not even the fastest plan does
/// the job's iterations by its deadline, nobody is asked for more.
///
/// Complexity  2 + `between` calls of the planner, or one.
/// Source      Dora, section 4.3: "the QoE-compliant, Pareto-optimal plans generated earlier"; how many, and from which runs
///             of the search, is not said there.
struct plan_menu {
  any_planner planner;
  int between = 4;

  /// To 2^-20 of itself: libraries differ in the last digits of a power, and a search may not.
  [[nodiscard]] static double rounded(double x);

  [[nodiscard]] plan_result operator()(const planning_problem& problem) const;
};

// The second rung: the same plan, its transfers scheduled for the network of the moment. Nothing moves.

/// The running plan with transfer rules for present conditions; nothing where it cannot run, now or for want of a way, or
/// breaks a limit.
///
/// @param p        of the whole cluster; rules that it has compete.
/// Complexity      that of schedule::refine for one plan.   Throws, Determinism  as it.
/// Source          Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<plan> reschedule(const planning_problem& problem, const plan& p, const conditions& noticed,
                                             std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                             const schedule::refine_options& options = {});

/// Plans that can be tried under any conditions. The same question is simulated once, while it is remembered: conditions of a
/// long timeline need not come again.
///
/// Source  the plans that Dora's adapter keeps (section 4.3); that they are tried again under new conditions is ours.
class known_plans {
 public:
  /// The problem must outlive it.
  explicit known_plans(const planning_problem& problem) : problem_(&problem) {}
  explicit known_plans(const planning_problem&& the_problem_must_outlive_it) = delete;

  /// Takes a plan in, unless it is known; its index.  Throws  as tasks::expand.
  std::size_t add(plan p);
  /// It has been of use: such plans are forgotten last.
  std::size_t touch(std::size_t i);
  /// Forgets those beyond `most` that have been of no use for longest. True: what is left has other indices.
  bool forget(std::size_t most);
  /// The same plan with its transfers scheduled for the moment (reschedule), as another known plan; nothing where that
  /// finds none.  Complexity: that of adapt::reschedule, if the moment is new.
  std::optional<std::size_t> reschedule(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic,
                                        const qoe_target& wanted, const schedule::refine_options& options);
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  [[nodiscard]] const plan& operator[](std::size_t i) const { return all_[i].runner.what(); }
  [[nodiscard]] std::span<const device_id> devices(std::size_t i) const { return all_[i].runner.devices(); }
  /// Answers that are kept, of all plans: at most 2 * `most_remembered` for each.
  [[nodiscard]] std::size_t remembered() const;
  static constexpr std::size_t most_remembered = 256;

  /// The index of the plan that serves best, of all or of some; nothing if none of them can run. Ties: the first.
  /// Complexity  that of try_out for each.
  [[nodiscard]] std::optional<std::size_t> best(const goal& wanted, const conditions& now, std::span<const foreign_traffic> traffic,
                                                std::optional<std::span<const ranked_plan>> among = {});

  /// How well a plan serves.  Complexity: that of try_out.
  [[nodiscard]] serving serves(const goal& wanted, std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic);
  /// An iteration while nothing changes; infinite where the plan cannot run.  Complexity: one simulation, if it is new.
  [[nodiscard]] iteration try_out(std::size_t i, const conditions& now, std::span<const foreign_traffic> traffic);

 private:
  /// The conditions that a plan depends on: its own devices, and the network.
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

// The answer to a small change: the running plan with its transfers in another order, where that serves better.

/// A reaction on the rung `network`: the running plan, its transfers scheduled for the moment. Nothing where that finds no other
/// order, or none that serves the job's goal better.
///
/// @param known    takes in the running plan and the one found.
/// @param s        `s.running` must not be null.
/// @param options  `network` and `thinking.reschedule`.
/// Complexity  that of known_plans::reschedule and two of its simulations, if the moment is new.
/// Throws      as schedule::refine; invalid_input if nothing runs.
/// Determinism yes.
/// Source      Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
[[nodiscard]] std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                        const policy_options& options);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/known_plans.ipp>
#endif
