// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/fixed_policies.hpp>

#include <cmath>
#include <limits>

#include <range/v3/view/zip.hpp>

#include <hetplan/adapt/environment.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE double distance(const conditions& a, const conditions& b) {
  double most = 1;
  const auto compare = [&](double x, double y) {
    if (x != y) most = std::max({most, x / y, y / x});
  };
  for (std::size_t d = 0; d < a.speed.size(); ++d) {
    if (a.works(device_id(d)) && b.works(device_id(d))) compare(a.speed[d], b.speed[d]);
  }
  for (const auto& [x, y] : ranges::views::zip(a.capacity, b.capacity)) compare(x.value(), y.value());
  return (most - 1) / 0.1;
}

HETPLAN_INLINE plan_search::plan_search(const planning_problem& problem, any_planner planner, std::shared_ptr<planning_memory> memory)
    : problem_(&problem), plan_(problem, std::move(planner), std::move(memory)) {}

HETPLAN_INLINE bool plan_search::may_pay(const situation& s, const qoe_target& wanted) {
  const conditions now = rounded(offered(s.noticed, s.traffic, problem_->cluster.network()), problem_->cluster);
  const search_record& record = record_of(now, wanted);
  const moment* near = nearest(record, now);
  if (near == nullptr || outgrown(*near, left_of(wanted, s))) return true;
  const double d = distance(near->conditions, now);
  return d >= 1 && at_most(record.wait, record.steps + step(record, now, d) + lasted(record, s));
}

HETPLAN_INLINE const plan_result& plan_search::operator()(known_plans& known, const situation& s, const qoe_target& wanted) {
  const conditions now = rounded(offered(s.noticed, s.traffic, problem_->cluster.network()), problem_->cluster);
  search_record& record = record_of(now, wanted);
  const qoe_target left = left_of(wanted, s);
  const moment* near = nearest(record, now);
  ask_again_.reset();
  if (near != nullptr && !outgrown(*near, left)) {
    const double d = distance(near->conditions, now);
    if (d < 1) return near->answer;
    record.steps += step(record, now, d);
    record.last = now;
    if (const double waited = record.steps + lasted(record, s); !at_most(record.wait, waited)) {
      ask_again_ = s.now + std::min((record.wait - waited) * a_step, longest_timeline);
      return near->answer;
    }
  }
  const goal wants(problem_->job, s);
  const auto serves = [&](std::optional<std::size_t> i) {
    return i ? known.serves(wants, *i, s.noticed, s.traffic) : wants.of(iteration{});
  };
  const serving before = serves(known.best(wants, s.noticed, s.traffic));
  plan_result found = plan_(s.noticed, s.traffic, left);
  const serving after = serves(known.best(wants, s.noticed, s.traffic, found.plans));
  const bool futile = !record.moments.empty() && !is_better(after, before);
  record.wait = futile ? std::clamp(2 * record.wait, first_wait, std::isinf(before.score) ? farthest : longest_wait) : 0;
  record.steps = 0;
  record.last = now;
  record.since = s.now;
  if (record.moments.size() == most_moments) record.moments.pop_back();
  record.moments.push_front({now, std::move(found), pace(left)});
  return record.moments.front().answer;
}

HETPLAN_INLINE bool plan_search::is_better(const serving& a, const serving& b) {
  constexpr double gain = 0.01;
  if (!at_most(a.late_s, b.late_s) || !at_most(b.late_s, a.late_s)) return a.late_s < (1 - gain) * b.late_s;
  return std::isinf(b.score) ? a.score < b.score : a.score < b.score - gain * std::abs(b.score);
}

HETPLAN_INLINE double plan_search::pace(const qoe_target& left) {
  if (!left.deadline || !left.iterations) return std::numeric_limits<double>::infinity();
  return left.deadline->value() / static_cast<double>(*left.iterations);
}

HETPLAN_INLINE bool plan_search::outgrown(const moment& m, const qoe_target& left) {
  if (m.answer.plans.empty()) return false;
  const double fastest = m.answer.plans.front().evaluation.latency.value();
  return fastest > m.pace_s && fastest < 0.9 * pace(left);
}

HETPLAN_INLINE qoe_target plan_search::left_of(qoe_target wanted, const situation& s) {
  if (!wanted.deadline || !wanted.iterations) return wanted;
  const qoe_target rest{.deadline = *wanted.deadline - s.now, .iterations = std::max(1LL, *wanted.iterations - s.done)};
  const double k = *rest.deadline > seconds{} ? std::ceil(rounding_steps(pace(rest) / pace(wanted)) - relative_tolerance) : -most_paces;
  wanted.deadline = seconds(rounded_value(wanted.deadline->value(), std::lround(std::clamp(k, -most_paces, most_paces))));
  return wanted;
}

HETPLAN_INLINE plan_search::search_record& plan_search::record_of(const conditions& now, const qoe_target& wanted) {
  std::vector<char> works = now.working();
  const auto it = std::find_if(records_.begin(), records_.end(),
                               [&](const search_record& record) { return record.works == works && record.wanted == wanted; });
  if (it != records_.end()) {
    records_.splice(records_.begin(), records_, it);
  } else {
    if (records_.size() == most_records) records_.pop_back();
    records_.push_front({std::move(works), wanted});
  }
  return records_.front();
}

HETPLAN_INLINE const plan_search::moment* plan_search::nearest(const search_record& record, const conditions& now) {
  const moment* best = nullptr;
  double least = 0;
  for (const moment& m : record.moments) {
    const double d = distance(m.conditions, now);
    if (best != nullptr && d >= least) continue;
    best = &m;
    least = d;
  }
  return best;
}

HETPLAN_INLINE change_classifier::change_classifier(const policy_options& o) : large_(std::max(o.small, o.ignore)), ignore_(o.ignore) {
  static_cast<void>(checked_options(o, "change_classifier"));
}

HETPLAN_INLINE change_size change_classifier::classify(const situation& s) {
  std::vector<std::tuple<device_id, device_id, int>> traffic;
  for (const foreign_traffic& f : s.traffic) traffic.emplace_back(f.from, f.to, f.priority);
  const bool large = !answered_ || change(*answered_, s.noticed) >= large_ || traffic_ != traffic || wanted_ != s.wanted || !s.can_run ||
                     !s.dropped.empty();
  if (!large) {
    const double since = change(*last_, s.noticed);
    if (since == 0 || since < ignore_) return change_size::none;
    last_ = s.noticed;
    return change_size::small;
  }
  answered_ = last_ = s.noticed;
  traffic_ = std::move(traffic);
  wanted_ = s.wanted;
  return change_size::large;
}

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
  for (const ranked_plan& r : found.plans) known_.add(r.plan);
  const auto best = known_.best(goal(problem_->job, s), s.noticed, s.traffic);
  if (!best) return {.ask_again = plan_.ask_again(), .reason = found.status.reason};
  if (s.running != nullptr && known_[*best] == *s.running) return {.ask_again = plan_.ask_again()};
  return {.next = known_[*best],
          .how = switching::at_no_cost,
          .reached = rung::known_plan,
          .ask_again = plan_.ask_again(),
          .reason = "the best plan of the moment"};
}

}  // namespace hetplan::adapt
