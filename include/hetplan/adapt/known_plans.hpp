// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The plans that a policy knows, and their performance under given conditions.

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
