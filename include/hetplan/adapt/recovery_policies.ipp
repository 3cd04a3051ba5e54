// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/recovery_policies.hpp>

#include <utility>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replay.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE std::vector<device_id> lost_devices(const cluster& c, const conditions& now) {
  std::vector<device_id> lost;
  for (const device& d : c.devices()) {
    if (!now.works(d.id)) lost.push_back(d.id);
  }
  return lost;
}

HETPLAN_INLINE const plan_result& remembered_replay::operator()(const planning_problem& problem, const plan& running,
                                                                std::vector<device_id> lost) {
  if (!running_ || lost_ != lost || *running_ != running) {
    result_ = lightweight_replay(problem, running, lost);
    running_ = running;
    lost_ = std::move(lost);
  }
  return result_;
}

HETPLAN_INLINE replay_policy::replay_policy(const planning_problem& problem, plan first, thinking_times thinking)
    : problem_(&problem), first_(std::move(first)), thinking_(thinking) {}

HETPLAN_INLINE reaction replay_policy::react(const situation& s) {
  if (s.running == nullptr) return {.next = first_};
  if (s.can_run) return {};
  const plan_result& r = replay_(*problem_, *s.running, lost_devices(problem_->cluster, s.noticed));
  if (r.plans.empty()) return {.reason = r.status.reason};
  return {.next = r.plans.front(), .reached = rung::replanned, .thinking = thinking_.replay, .reason = "partition points moved"};
}

HETPLAN_INLINE rescheduling_policy::rescheduling_policy(const planning_problem& problem, plan first, any_planner planner,
                                                        policy_options options)
    : problem_(&problem), first_(std::move(first)), options_(checked_options(options, "rescheduling_policy")), known_(problem),
      plan_(problem, std::move(planner), options.memory) {}

HETPLAN_INLINE reaction rescheduling_policy::react(const situation& s) {
  if (s.running == nullptr) return {.next = first_};
  if (s.can_run) return {};
  known_.forget(options_.most_plans);
  const plan_result& r = plan_(known_, s, s.wanted);
  if (r.plans.empty()) return {.ask_again = plan_.ask_again(), .reason = r.status.reason};
  const auto best = known_.best(goal(problem_->job, s), s.noticed, s.traffic, r.plans);  // an answer may be of another moment
  if (!best) return {.ask_again = plan_.ask_again(), .reason = "no plan of the planner's can run"};
  return {.next = known_[*best],
          .how = switching::through_coordinator,
          .reached = rung::replanned,
          .thinking = options_.thinking.replan,
          .ask_again = plan_.ask_again(),
          .reason = "planned anew by the coordinator"};
}

}  // namespace hetplan::adapt
