// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Two answers to the loss of a device, and to nothing else: move partition points, or gather, plan anew and redistribute.

#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/fixed_policies.hpp>
#include <hetplan/adapt/replay.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// The devices of a cluster that do not work.
[[nodiscard]] inline std::vector<device_id> lost_devices(const cluster& c, const conditions& now) {
  std::vector<device_id> lost;
  for (const device& d : c.devices()) {
    if (!now.works(d.id)) lost.push_back(d.id);
  }
  return lost;
}

/// lightweight_replay, worked out once for the same plan and losses: while nothing can run, all that happens asks again.
class remembered_replay {
 public:
  template <class Problem>
  [[nodiscard]] const plan_result& operator()(const Problem& problem, const plan& running, std::vector<device_id> lost) {
    if (!running_ || lost_ != lost || *running_ != running) {
      result_ = lightweight_replay(problem, running, lost);
      running_ = running;
      lost_ = std::move(lost);
    }
    return result_;
  }

 private:
  std::optional<plan> running_;
  std::vector<device_id> lost_;
  plan_result result_;
};

/// Lightweight: the running plan without the lost devices, adjacent stages migrate layers at once. Shares are those of
/// devices at full speed.
///
/// Source  Asteroid, section 3.4.
template <class Problem>
class replay_policy {
 public:
  replay_policy(const Problem& problem, plan first, thinking_times thinking = {})
      : problem_(&problem), first_(std::move(first)), thinking_(thinking) {}

  [[nodiscard]] reaction react(const situation& s) {
    if (s.running == nullptr) return {.next = first_};
    if (s.can_run) return {};
    const plan_result& r = replay_(*problem_, *s.running, lost_devices(problem_->cluster, s.noticed));
    if (r.plans.empty()) return {.reason = r.status.reason};
    return {.next = r.plans.front(), .step = rung::replanned, .thinking = thinking_.replay, .reason = "partition points moved"};
  }

 private:
  const Problem* problem_;
  plan first_;
  thinking_times thinking_;
  remembered_replay replay_;
};

/// Heavy: the model comes together at the coordinator, the planner runs, weights go out again.
///
/// Source  Asteroid, section 3.4, the baseline of Figs 16 and 17.
template <class Problem, class Planner>
class rescheduling_policy {
 public:
  rescheduling_policy(const Problem& problem, plan first, Planner planner, policy_options options = {})
      : problem_(&problem),
        first_(std::move(first)),
        options_(checked_options(options, "rescheduling_policy")),
        known_(problem),
        plan_(problem, std::move(planner), options.memory) {}

  [[nodiscard]] reaction react(const situation& s) {
    if (s.running == nullptr) return {.next = first_};
    if (s.can_run) return {};
    known_.forget(options_.most_plans);
    const plan_result& r = plan_(known_, s, s.wanted);
    if (r.plans.empty()) return {.ask_again = plan_.ask_again(), .reason = r.status.reason};
    const auto best = known_.best(wish(problem_->job, s), s.noticed, s.traffic, r.plans);  // an answer may be of another moment
    if (!best) return {.ask_again = plan_.ask_again(), .reason = "no plan of the planner's can run"};
    return {.next = known_[*best],
            .how = switching::through_coordinator,
            .step = rung::replanned,
            .thinking = options_.thinking.replan,
            .ask_again = plan_.ask_again(),
            .reason = "planned anew by the coordinator"};
  }

 private:
  const Problem* problem_;
  plan first_;
  policy_options options_;
  known_plans<Problem> known_;
  plan_search<Problem, Planner> plan_;
};

}  // namespace HETPLAN_NAMESPACE::adapt
