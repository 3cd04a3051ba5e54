// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/fixed_policies.hpp>

#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE policy_options checked_options(policy_options o, const char* who) {
  const auto require = [who](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string(who) + ": " + option + " = " + to_text(given) + "; expected " + expected);
  };
  require(std::isfinite(o.small) && o.small >= 0, "small", o.small, "a finite number >= 0");
  require(std::isfinite(o.ignore) && o.ignore >= 0, "ignore", o.ignore, "a finite number >= 0");
  require(o.most_plans >= 1, "most_plans", static_cast<double>(o.most_plans), "at least 1");
  return o;
}

HETPLAN_INLINE reaction static_plan::react(const situation& s) const {
  if (s.running == nullptr) return {.next = first_};
  return {};
}

namespace detail {

HETPLAN_INLINE change_size change_classifier::classify(const situation& s) {
  const bool large = !answered_ || change(*answered_, s.noticed) >= large_ || traffic_ != list(s.traffic) || wanted_ != s.wanted ||
                     !s.can_run || !s.dropped.empty();
  if (!large) {
    const double since = change(*last_, s.noticed);
    if (since == 0 || since < ignore_) return change_size::none;
    last_ = s.noticed;
    return change_size::small;
  }
  answered_ = last_ = s.noticed;
  traffic_ = list(s.traffic);
  wanted_ = s.wanted;
  return change_size::large;
}

HETPLAN_INLINE change_classifier::traffic_list change_classifier::list(std::span<const foreign_traffic> traffic) {
  traffic_list all;
  for (const foreign_traffic& f : traffic) all.emplace_back(f.from, f.to, f.priority);
  return all;
}

}  // namespace detail

namespace detail {

HETPLAN_INLINE std::optional<reaction> reorder_transfers(const planning_problem& problem, known_plans& known, const situation& s,
                                                         const policy_options& options) {
  const std::size_t running = known.add(*s.running);
  const auto scheduled = known.reschedule(running, s.noticed, s.traffic, s.wanted, options.network);
  if (!scheduled) return std::nullopt;
  const goal wanted(problem.job, s);
  const auto serves = [&](std::size_t i) { return known.serves(wanted, i, s.noticed, s.traffic); };
  if (serves(*scheduled) >= serves(running)) return std::nullopt;
  return reaction{
      .next = known[*scheduled], .reached = rung::network, .thinking = options.thinking.reschedule, .reason = "transfers in another order"};
}

}  // namespace detail

HETPLAN_INLINE network_only::network_only(const planning_problem& problem, plan first, policy_options options)
    : problem_(&problem), first_(std::move(first)), options_(checked_options(options, "network_only")), known_(problem), changes_(options) {
}

HETPLAN_INLINE reaction network_only::react(const situation& s) {
  const bool calm = changes_.classify(s) == detail::change_size::none;
  if (s.running == nullptr) return {.next = first_};
  if (calm || !s.can_run) return {};
  known_.forget(options_.most_plans);
  return detail::reorder_transfers(*problem_, known_, s, options_).value_or(reaction{});
}

HETPLAN_INLINE replan_always::replan_always(const planning_problem& problem, any_planner planner, policy_options options)
    : problem_(&problem), options_(checked_options(options, "replan_always")), known_(problem),
      plan_(problem, std::move(planner), options.memory), changes_(options) {}

HETPLAN_INLINE reaction replan_always::react(const situation& s) {
  if (changes_.classify(s) != detail::change_size::large && !(plan_.ask_again() && s.now >= *plan_.ask_again())) {
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
    if (serves(known_.add(*s.running)) <= serves(*best)) return {.ask_again = plan_.ask_again(), .cancel = s.coming != nullptr};
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
