// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One iteration of a plan under given conditions.
/// Source  semantics, section 10: an iteration keeps the conditions that hold while it runs.

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::adapt {

/// True if a plan computes on a device.  O(stages x devices per stage).
[[nodiscard]] bool uses(const plan& p, device_id d);

/// The result of an iteration.
struct iteration {
  bool ended = false;  ///< false: `until` came first
  double took_s = 0;
  double response_s = 0;                     ///< T, or the time between tokens; T so far if it did not end
  double first_s = 0;                        ///< T, or the time to the first token
  std::vector<double> device_J = {};         ///< by device, 0 for unused ones
  std::vector<double> background_left = {};  ///< bytes, by background transfer

  [[nodiscard]] double energy_J() const;
};

/// Returns how many consecutive iterations end by a time, and how many until one ends then or later, up to rounding.
[[nodiscard]] double whole_until(double at_s, double now_s, double each_s);
[[nodiscard]] double whole_reaching(double at_s, double now_s, double each_s);

/// Returns the energy of moving bytes, by device.
[[nodiscard]] std::vector<double> energy_of_bytes(const any_energy_model& energy, const cluster& c, const std::vector<double>& sent,
                                                  const std::vector<double>& received);
/// Adds the idle energy of present devices over a time, except for devices that have been charged already.
void add_idle_energy(std::vector<double>& spent, const any_energy_model& energy, const cluster& c, std::span<const device_id> devices,
                     const conditions& now, double for_s);

/// A plan that is expanded once and simulated whenever its conditions change. Iterations equal those of `judge`.
class plan_runner {
 public:
  /// Throws  as tasks::expand.
  plan_runner(const planning_problem& problem, plan p);
  plan_runner(const planning_problem&& the_problem_must_outlive_it, plan) = delete;

  [[nodiscard]] const plan& what() const { return plan_; }
  /// Returns the devices that the plan uses, ascending.
  [[nodiscard]] std::span<const device_id> devices() const { return devices_; }
  /// Returns the resources that the plan's transfers need, ascending.
  [[nodiscard]] std::span<const resource_id> resources() const { return resources_; }
  [[nodiscard]] bool can_run(const conditions& now) const;

  /// Complexity  one simulation.   Throws  invalid_input if the run would wait forever and `options` set no end.
  [[nodiscard]] iteration run(const simulator_options& options);

  /// Simulates an iteration under constant conditions; the response is infinite if it cannot end.  Complexity: one simulation.
  [[nodiscard]] iteration rehearse(const conditions& now, std::span<const foreign_traffic> traffic = {});

 private:
  const planning_problem* problem_;
  plan plan_;
  std::vector<device_id> devices_;
  std::vector<resource_id> resources_;
  judgement judged_;
};

/// How well a plan serves; smaller is better, lateness first.
struct serving {
  double late_s = 0;  ///< time from the deadline to the end of the job
  double score = 0;   ///< of the job's objective; with a deadline: joules until the end

  /// True if this one is less late, or no later and of smaller score, up to rounding.
  [[nodiscard]] bool beats(const serving& other) const;
};

/// Orders plans by their current performance, as if it lasted until the end.
///
/// With a deadline and a number of iterations: in time before late, then least energy. Otherwise the job's objective.
///
/// Source  Dora, section 4.3: long-term and continuous quality of experience.
class goal {
 public:
  /// @param j  gives the objective; `wanted` replaces its quality of experience.
  goal(job j, const qoe_target& wanted, seconds now, long long done);
  goal(const job& j, const situation& s) : goal(j, s.wanted, s.now, s.done) {}

  [[nodiscard]] serving of(const iteration& i) const;
  /// True if the wanted latency is kept with this share of slack; empty if none is wanted.
  [[nodiscard]] std::optional<bool> keeps_latency(const iteration& i, double spare = 0) const;

 private:
  double now_s_;
  std::optional<seconds> latency_;
  std::optional<double> deadline_s_;
  double left_ = 0;
  objective_of_job objective_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/iteration.ipp>
#endif
