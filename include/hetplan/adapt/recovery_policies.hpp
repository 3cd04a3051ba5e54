// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Two answers to the loss of a device, and to nothing else: move partition points, or gather, plan anew and redistribute.

#include <optional>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// The devices of a cluster that do not work.
[[nodiscard]] std::vector<device_id> lost_devices(const cluster& c, const conditions& now);

/// lightweight_replay, worked out once for the same plan and losses: while nothing can run, all that happens asks again.
class remembered_replay {
 public:
  [[nodiscard]] const plan_result& operator()(const planning_problem& problem, const plan& running, std::vector<device_id> lost);

 private:
  std::optional<plan> running_;
  std::vector<device_id> lost_;
  plan_result result_;
};

/// Lightweight: the running plan without the lost devices, adjacent stages migrate layers at once. Shares are those of
/// devices at full speed.
///
/// Source  Asteroid, section 3.4.
class replay_policy {
 public:
  replay_policy(const planning_problem& problem, plan first, thinking_times thinking = {});
  replay_policy(const planning_problem&& the_problem_must_outlive_it, plan, thinking_times = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  thinking_times thinking_;
  remembered_replay replay_;
};

/// Heavy: the model comes together at the coordinator, the planner runs, weights go out again.
///
/// Source  Asteroid, section 3.4, the baseline of Figs 16 and 17.
class rescheduling_policy {
 public:
  rescheduling_policy(const planning_problem& problem, plan first, any_planner planner, policy_options options = {});
  rescheduling_policy(const planning_problem&& the_problem_must_outlive_it, plan, any_planner, policy_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  const planning_problem* problem_;
  plan first_;
  policy_options options_;
  known_plans known_;
  plan_search plan_;
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/recovery_policies.ipp>
#endif
