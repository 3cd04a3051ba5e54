// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/ladder.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replay.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>

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

HETPLAN_INLINE void check_ladder_options(const ladder_options& o) {
  const auto require = [](bool ok, const char* option, double given, const char* expected) {
    if (!ok) throw invalid_input(std::string("ladder: ") + option + " = " + to_text(given) + "; expected " + expected);
  };
  static_cast<void>(checked_options(o.common, "ladder"));
  require(std::isfinite(o.tolerance) && o.tolerance >= 0, "tolerance", o.tolerance, "a finite number >= 0");
  require(o.spare >= 0 && o.spare < 1, "spare", o.spare, "a share >= 0 and < 1");
  require(is_finite(o.patience) && o.patience >= seconds{}, "patience", o.patience.value(), "finite seconds >= 0");
  require(is_finite(o.dwell) && o.dwell >= seconds{}, "dwell", o.dwell.value(), "finite seconds >= 0");
  require(is_finite(o.payback) && o.payback > seconds{}, "payback", o.payback.value(), "finite seconds > 0");
}

HETPLAN_INLINE ladder::ladder(const planning_problem& problem, any_planner planner, ladder_options options)
    : problem_(&problem), options_(options), known_(problem), plan_(problem, std::move(planner), options.common.memory),
      changes_(checked_options(options.common, "ladder")) {
  check_ladder_options(options);
}

HETPLAN_INLINE reaction ladder::react(const situation& s) {
  const change_size changed = changes_.classify(s);
  const bool large = changed == change_size::large;
  if (large && s.running != nullptr) ++changes_answered_;
  known_.forget(options_.common.most_plans);
  if (!large && !(postponed_ && at_most(*postponed_, s.now))) {
    reaction r;
    if (changed == change_size::small && s.running != nullptr && s.coming == nullptr) {
      r = reorder_transfers(*problem_, known_, s, options_.common).value_or(reaction{});
    }
    r.ask_again = postponed_;
    return r;
  }
  postponed_.reset();
  const goal wanted(problem_->job, s);
  if (s.running == nullptr || !s.can_run) {
    const std::optional<choice> best = best_of(s, wanted, everything(s));
    if (!best) {
      postponed_ = plan_.ask_again();
      return {.ask_again = postponed_, .reason = answer(s).status.reason};
    }
    if (s.running == nullptr) return first(*best);
    return adopt(s, *best, switching::delta, "the running plan cannot go on");
  }

  const std::size_t running = running_ = known_.add(*s.running);
  choice mine = judged(s, wanted, running, rung::none, seconds{});
  if (holds(s, wanted, mine)) return {.cancel = s.coming != nullptr, .reason = "holds again"};

  if (const auto p = known_.reschedule(running, s.noticed, s.traffic, s.wanted, options_.common.network)) {
    const choice c = judged(s, wanted, *p, rung::network, options_.common.thinking.reschedule);
    if (c.plan != running && (holds(s, wanted, c) || beats(c, mine))) {
      if (holds(s, wanted, c)) return adopt(s, c, switching::delta, "the network alone holds what is wanted");
      mine = c;
    }
  }
  if (s.coming != nullptr) return {};
  if (large) lasts_since_ = s.since;
  const seconds calm = std::max(lasts_since_ + options_.patience, moved_ ? *moved_ + options_.dwell : seconds{});
  if (!at_most(calm, s.now)) {  // not yet: the same question again then
    postponed_ = calm;
    reaction r = mine.plan != running ? adopt(s, mine, switching::delta, "the network alone, until weights may move") : reaction{};
    r.ask_again = calm;
    return r;
  }
  std::vector<candidate> all = known_ones();
  std::optional<choice> best = best_of(s, wanted, all);
  if (best && holds(s, wanted, *best) && beats(*best, mine) && is_worth_moving_for(wanted, *best)) {
    return adopt(s, *best, switching::background, "a plan that is known holds what is wanted");
  }
  all = everything(s);
  best = best_of(s, wanted, all);
  if (best) best->thinking = std::max(best->thinking, options_.common.thinking.replan);  // the search was for it
  if (best && beats(*best, mine)) return adopt(s, *best, switching::background, "a new plan for new conditions");
  reference_ = mine.now.response_s;  // nothing better is to be had
  postponed_ = plan_.ask_again();
  reaction r = mine.plan != running ? adopt(s, mine, switching::delta, "the network alone is the best that helps") : reaction{};
  r.ask_again = postponed_;
  return r;
}

HETPLAN_INLINE std::vector<ladder::candidate> ladder::known_ones() const {
  std::vector<candidate> all;
  for (std::size_t i = 0; i < known_.size(); ++i) all.push_back({i, rung::known_plan, options_.common.thinking.choose});
  return all;
}

HETPLAN_INLINE std::vector<ladder::candidate> ladder::everything(const situation& s) {
  std::vector<candidate> all = known_ones();
  const auto take = [&](const plan_result& r, seconds thinking) {
    for (const plan& p : r.plans) {
      const std::size_t i = known_.add(p);
      if (i >= all.size()) all.push_back({i, rung::replanned, thinking});
    }
  };
  if (s.running != nullptr && !s.can_run) {
    take(replay_(*problem_, *s.running, lost_devices(problem_->cluster, s.noticed)), options_.common.thinking.replay);
  }
  take(answer(s), options_.common.thinking.replan);
  return all;
}

HETPLAN_INLINE const plan_result& ladder::answer(const situation& s) {
  const plan_result& usual = plan_(known_, s, s.wanted);
  if (!s.wanted.latency || usual.plans.empty()) return usual;
  const auto& best = usual.plans.front().predicted;
  if (best && !at_most(best->response(), *s.wanted.latency)) return usual;  // where all miss it, their order is that of any shorter one
  qoe_target wanted = s.wanted;
  *wanted.latency *= 1 - options_.spare;
  return plan_(known_, s, wanted);
}

HETPLAN_INLINE ladder::choice ladder::judged(const situation& s, const goal& wanted, std::size_t plan, rung reached, seconds thinking) {
  choice c{plan, reached, thinking, known_.try_out(plan, s.noticed, s.traffic), {}};
  c.amortised = wanted.of(c.now);
  if (s.running == nullptr || !c.now.ended || moves_nothing(*s.running, known_[plan])) return c;
  // The way to a plan that serves less well than the running one need not be known: it would not be taken.
  if (s.can_run && !wanted.keeps_latency(c.now).value_or(false) &&
      !c.amortised.beats(known_.serves(wanted, running_, s.noticed, s.traffic))) {
    return c;
  }
  const std::optional<switch_time> cost = time_of_switch(s, plan);
  if (!cost) c.now.ended = false;
  const double payback = time_to_pay_back(s.now).value(), beside = cost ? cost->beside_s : 0;
  const double pause = cost ? cost->pause_s + (s.can_run ? 0 : thinking.value()) : payback;
  if (const double rest = payback - pause - beside; rest > 0.01 * payback) {
    const double old = beside > 0 ? wanted.of(cost->meanwhile).score : 0;
    if (old > 0 && c.amortised.score > 0) c.amortised.score = payback / (beside / old + rest / c.amortised.score);
    else c.amortised.score *= payback / (rest + beside);
  } else {  // what would not pay back in time still beats standing still: the shortest pause first
    c.amortised.score *= 100 * (pause + beside) / payback;
  }
  return c;
}

HETPLAN_INLINE seconds ladder::time_to_pay_back(seconds now) const {
  const seconds most = options_.payback;
  return std::min(most, (most + now) / (1.0 + static_cast<double>(changes_answered_)));
}

HETPLAN_INLINE std::optional<ladder::switch_time> ladder::time_of_switch(const situation& s, std::size_t plan) {
  const migration all = delta_migration(s.held, known_[plan], problem_->model, problem_->cluster, s.noticed);
  if (!all.status.ok()) return std::nullopt;
  const auto time_s = [&](const migration& m) {
    return m.empty() ? 0 : run_migration(m, problem_->cluster, s.noticed, problem_->models.energy).time.value();
  };
  if (!s.can_run) return switch_time{time_s(all), 0};
  const auto [beside, stopped] = split_beside(all, *s.running, problem_->model, problem_->cluster, problem_->models.memory);
  switch_time t{time_s(stopped)};
  std::vector<foreign_traffic> traffic(s.traffic.begin(), s.traffic.end());
  for (const auto& round : beside.rounds) {
    for (const fetch& f : round) traffic.push_back({f.from, f.to, f.volume, std::numeric_limits<int>::max()});
  }
  if (traffic.size() == s.traffic.size()) return t;
  t.meanwhile = known_.try_out(running_, s.noticed, traffic);
  for (std::size_t i = s.traffic.size(); i < std::min(traffic.size(), t.meanwhile.background_left.size()); ++i) {
    const double volume = traffic[i].left.value(), left = t.meanwhile.background_left[i];  // after one iteration
    if (!(left < volume)) return switch_time{time_s(all), 0};                              // the running plan leaves it nothing
    t.beside_s = std::max(t.beside_s, t.meanwhile.took_s * std::max(1.0, volume / (volume - left)));
  }
  return t;
}

HETPLAN_INLINE std::optional<ladder::choice> ladder::best_of(const situation& s, const goal& wanted, const std::vector<candidate>& all) {
  std::optional<choice> best;
  for (const candidate& c : all) {
    const choice x = judged(s, wanted, c.plan, c.reached, c.thinking);
    if (!x.now.ended) continue;
    const int mine = rank(wanted, x), other = best ? rank(wanted, *best) : 0;
    if (!best || mine < other || (mine == other && x.amortised.beats(best->amortised))) best = x;
  }
  if (best) known_.touch(best->plan);
  return best;
}

HETPLAN_INLINE int ladder::rank(const goal& wanted, const choice& c) const {
  const bool kept = wanted.keeps_latency(c.now).value_or(true), well = wanted.keeps_latency(c.now, options_.spare).value_or(true);
  return kept ? (well ? 0 : 1) : 2;
}

HETPLAN_INLINE bool ladder::beats(const choice& a, const choice& b) const {
  return !b.now.ended || a.amortised.score * (1 + options_.tolerance) < b.amortised.score;
}

HETPLAN_INLINE bool ladder::holds(const situation& s, const goal& wanted, const choice& c) {
  if (const auto kept = wanted.keeps_latency(c.now)) return *kept;
  if (!c.now.ended || c.now.response_s > (1 + options_.tolerance) * reference_) return false;
  const auto best = best_of(s, wanted, known_ones());
  return !best || !beats(*best, c);
}

HETPLAN_INLINE bool ladder::is_worth_moving_for(const goal& wanted, const choice& c) const {
  return wanted.keeps_latency(c.now).has_value() || c.now.response_s <= (1 + options_.tolerance) * best_reference_;
}

HETPLAN_INLINE reaction ladder::first(const choice& c) {
  reference_ = best_reference_ = c.now.response_s;
  return {.next = known_[c.plan]};
}

HETPLAN_INLINE reaction ladder::adopt(const situation& s, const choice& c, switching how, const char* why) {
  reference_ = c.now.response_s;
  best_reference_ = std::min(best_reference_, reference_);
  if (!same_placement(known_[c.plan], *s.running)) moved_ = s.now + c.thinking;
  const seconds answers = s.can_run && c.reached != rung::network ? std::min(s.since, lasts_since_) : s.since;
  return {.next = known_[c.plan], .how = how, .reached = c.reached, .thinking = c.thinking, .answers = answers, .reason = why};
}

}  // namespace hetplan::adapt
