// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One iteration of a plan under the conditions of the moment.
///
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

/// Does a plan compute on a device?  O(stages x devices per stage).
[[nodiscard]] bool uses(const plan& p, device_id d);

/// How an iteration went.
struct iteration {
  bool ended = false;  ///< false: `until` came first
  double took_s = 0;
  double response_s = 0;                     ///< T, or the time between tokens; T so far where it did not end
  std::vector<double> device_J = {};         ///< by device, 0 for those that the plan leaves alone
  std::vector<double> background_left = {};  ///< bytes, by background transfer

  [[nodiscard]] double energy_J() const;
};

/// Iterations one after another, each so long: how many end by a time, and how many until one ends then or later. Rounding is no
/// difference.
[[nodiscard]] double whole_until(double at_s, double now_s, double each_s);
[[nodiscard]] double whole_reaching(double at_s, double now_s, double each_s);

/// By device: what moving bytes takes.
[[nodiscard]] std::vector<double> energy_of_bytes(const any_energy_model& energy, const cluster& c, const std::vector<double>& sent,
                                                  const std::vector<double>& received);
/// What devices draw that are there and do nothing for a time; those that have been charged already are left alone.
void add_idle_energy(std::vector<double>& spent, const any_energy_model& energy, const cluster& c, std::span<const device_id> devices,
                     const conditions& now, double for_s);

/// A plan that is expanded once and then run as often as its circumstances change.
///
/// The simulator judges: what an iteration takes here is what `judge` says of the plan under the same options.
class plan_runner {
 public:
  /// Throws  as tasks::expand.
  plan_runner(const planning_problem& problem, plan p);
  plan_runner(const planning_problem&& the_problem_must_outlive_it, plan) = delete;

  [[nodiscard]] const plan& what() const { return plan_; }
  /// The devices that it uses, ascending.
  [[nodiscard]] std::span<const device_id> devices() const { return devices_; }
  [[nodiscard]] bool uses(device_id d) const { return std::binary_search(devices_.begin(), devices_.end(), d); }
  /// The resources that its transfers need, ascending.
  [[nodiscard]] std::span<const resource_id> resources() const { return resources_; }
  [[nodiscard]] bool can_run(const conditions& now) const;

  /// Complexity  one simulation.   Throws  invalid_input where it would wait forever and `options` set no end.
  [[nodiscard]] iteration run(const simulator_options& options);

  /// An iteration while nothing changes; one that cannot end there has an infinite response.  Complexity: one simulation.
  [[nodiscard]] iteration rehearse(const conditions& now, std::span<const foreign_traffic> traffic = {});

 private:
  const planning_problem* problem_;
  plan plan_;
  std::vector<device_id> devices_;
  std::vector<resource_id> resources_;
  stage_graph stages_;
  judgement judged_;
};

// What is wanted of the rest of a job, as an order of plans.

/// How well a plan serves; smaller is better, lateness first.
struct serving {
  double late_s = 0;  ///< the job would end so long after its deadline
  double score = 0;   ///< of the job's objective; with a deadline: joules until the end

  /// But for rounding: is it less late than another one, or no later and with a smaller score?
  [[nodiscard]] bool beats(const serving& other) const;
};

/// Orders plans by what they do now, as if they did it until the end.
///
/// With a deadline and a number of iterations: in time before late, then least energy. Else the job's objective.
///
/// Source  Dora, section 4.3: long-term and continuous quality of experience.
class goal {
 public:
  /// @param j  says what counts; `wanted` stands for its quality of experience.
  goal(job j, const qoe_target& wanted, seconds now, long long done);
  goal(const job& j, const situation& s) : goal(j, s.wanted, s.now, s.done) {}

  [[nodiscard]] serving of(const iteration& i) const;
  /// Is the latency that is wanted kept, with a share of it to spare? Nothing, if none is wanted.
  [[nodiscard]] std::optional<bool> keeps_latency(const iteration& i, double spare = 0) const;

 private:
  [[nodiscard]] static job with(job j, const qoe_target& wanted);

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
