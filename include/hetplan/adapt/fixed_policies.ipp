// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/fixed_policies.hpp>

#include <hetplan/adapt/reorder_transfers.hpp>
#include <hetplan/core/at_most.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE reaction static_plan::react(const situation& s) const {
  if (s.running == nullptr) return {.next = first_};
  return {};
}

HETPLAN_INLINE network_only::network_only(const planning_problem& problem, plan first, policy_options options)
    : problem_(&problem), first_(std::move(first)), options_(checked_options(options, "network_only")), known_(problem), changes_(options) {
}

HETPLAN_INLINE reaction network_only::react(const situation& s) {
  const bool calm = changes_.classify(s) == change_size::none;
  if (s.running == nullptr) return {.next = first_};
  if (calm || !s.can_run) return {};
  known_.forget(options_.most_plans);
  return reorder_transfers(*problem_, known_, s, options_).value_or(reaction{});
}

HETPLAN_INLINE replan_always::replan_always(const planning_problem& problem, any_planner planner, policy_options options)
    : problem_(&problem), options_(checked_options(options, "replan_always")), known_(problem),
      plan_(problem, std::move(planner), options.memory), changes_(options) {}

HETPLAN_INLINE reaction replan_always::react(const situation& s) {
  if (changes_.classify(s) != change_size::large && !(plan_.ask_again() && at_most(*plan_.ask_again(), s.now))) {
    return {.ask_again = plan_.ask_again()};
  }
  known_.forget(options_.most_plans);
  const plan_result& found = plan_(known_, s, s.wanted);
  if (found.plans.empty()) return {.ask_again = plan_.ask_again(), .reason = found.status.reason};
  const goal wanted(problem_->job, s);
  const auto best = known_.best(wanted, s.noticed, s.traffic, found.plans);
  if (!best) return {.ask_again = plan_.ask_again(), .reason = "no plan of the planner's can run"};
  if (s.running != nullptr && s.can_run) {
    const auto serves = [&](std::size_t i) { return known_.serves(wanted, i, s.noticed, s.traffic); };
    if (!serves(*best).beats(serves(known_.add(*s.running)))) return {.ask_again = plan_.ask_again(), .cancel = s.coming != nullptr};
  }
  return {.next = known_[*best],
          .how = switching::background,
          .reached = rung::replanned,
          .thinking = options_.thinking.replan,
          .ask_again = plan_.ask_again(),
          .reason = "the planner's answer to the change"};
}

HETPLAN_INLINE oracle::oracle(const planning_problem& problem, any_planner planner, policy_options options)
    : problem_(&problem), options_(checked_options(options, "oracle")), known_(problem),
      plan_(problem, std::move(planner), options.memory) {}

HETPLAN_INLINE reaction oracle::react(const situation& s) {
  known_.forget(options_.most_plans);
  const plan_result& found = plan_(known_, s, s.wanted);
  for (const plan& p : found.plans) known_.add(p);
  const auto best = known_.best(goal(problem_->job, s), s.noticed, s.traffic);
  if (!best) return {.ask_again = plan_.ask_again(), .reason = found.status.reason};
  if (s.running != nullptr && known_[*best] == *s.running) return {.ask_again = plan_.ask_again()};
  return {.next = known_[*best],
          .how = switching::at_no_cost,
          .reached = rung::known_plan,
          .ask_again = plan_.ask_again(),
          .reason = "the best plan of the moment"};
}

}  // namespace HETPLAN_NAMESPACE::adapt
