// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The reaction ladder for work that should not stop: as little as holds the quality of experience, and no more.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/recovery_policies.hpp>
#include <hetplan/adapt/switch_estimate.hpp>
#include <hetplan/plan/same_placement.hpp>

namespace HETPLAN_NAMESPACE::adapt {

struct ladder_options {
  policy_options common = {};
  double tolerance = 0.1;  ///< no latency wanted: so much worse than it could be is good enough; also what a switch must gain
  double spare = 0.1;      ///< a plan is chosen with so much of the wanted latency to spare, where there is one
  seconds patience{10};    ///< weights move only for a change that has lasted so long
  seconds dwell{10};       ///< after weights have moved, none move again for so long while a plan runs
  seconds payback{300};    ///< a switch must have paid for its pause by then
};

/// Throws invalid_input naming the option, its value and what was expected.
void check_ladder_options(const ladder_options& o);

/// Climbs only as far as it must: the running plan's transfers in another order; another plan that is known; a new plan. A rung is
/// taken if it holds what is wanted; if none does, the best of them is. A change within 10 % never climbs higher than the first.
///
/// What is wanted is the job's latency. Where it names none, a plan holds while it stays within `tolerance` of what it did
/// when it was adopted and of the best plan known for the moment.
///
/// It does not flap: changes are measured against the conditions of the last answer, a plan that holds is kept though another
/// may be better, and one that does not must be beaten by more than the tolerance on average over `payback`, in which the old
/// plan goes on while weights come and nothing runs while state moves. Weights move only for what lasts, and then rest for a
/// while; a plan on its way is called back when it is not needed any more. Nothing of this binds when a device of the running
/// plan is gone: then the plan that gets most done in `payback` wins, of those known, a lightweight replay and a new one.
///
/// Throws  invalid_input (an option out of range).
/// Source  Dora, sections 4.3 and 5. Deviations: known plans before a search; the paper says neither when a plan is good
///         enough nor what keeps it from flapping. Replay: Asteroid, section 3.4.
template <class Problem, class Planner>
class ladder {
 public:
  ladder(const Problem& problem, Planner planner, ladder_options options = {})
      : problem_(&problem),
        options_(options),
        known_(problem),
        plan_(problem, std::move(planner), options.common.memory),
        changes_(options.common) {
    check_ladder_options(options);
  }

  [[nodiscard]] reaction react(const situation& s) {
    const detail::change_size changed = changes_.classify(s);
    const bool large = changed == detail::change_size::large;
    known_.forget(options_.common.most_plans);
    if (!large && !(postponed_ && s.now >= *postponed_)) {
      reaction r;
      if (changed == detail::change_size::small && s.running != nullptr && s.coming == nullptr) {
        r = detail::reorder_transfers(*problem_, known_, s, options_.common).value_or(reaction{});
      }
      r.ask_again = postponed_;
      return r;
    }
    postponed_.reset();
    const wish wanted(problem_->job, s);
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
    if (s.now < calm) {  // not yet: the same question again then
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

 private:
  struct candidate {
    std::size_t plan;
    rung step;
    seconds thinking;
  };
  /// A candidate as it would do now; `amortised`: on average over `payback`, the way to it included.
  struct choice {
    std::size_t plan;
    rung step;
    seconds thinking;
    iteration now;
    serving amortised;
  };

  [[nodiscard]] std::vector<candidate> known_ones() const {
    std::vector<candidate> all;
    for (std::size_t i = 0; i < known_.size(); ++i) all.push_back({i, rung::known_plan, options_.common.thinking.choose});
    return all;
  }
  /// Known plans, a replay where a device is gone, and what the planner says.
  [[nodiscard]] std::vector<candidate> everything(const situation& s) {
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
  /// The planner's, with something to spare.
  [[nodiscard]] const plan_result& answer(const situation& s) {
    qoe_target wanted = s.wanted;
    if (wanted.latency) *wanted.latency *= 1 - options_.spare;
    return plan_(known_, s, wanted);
  }
  [[nodiscard]] choice judged(const situation& s, const wish& wanted, std::size_t plan, rung step, seconds thinking) {
    choice c{plan, step, thinking, known_.try_out(plan, s.noticed, s.traffic), {}};
    c.amortised = wanted.of(c.now);
    if (s.running == nullptr || !c.now.ended || moves_nothing(*s.running, known_[plan])) return c;
    // The way to a plan that serves less well than the running one need not be known: it would not be taken.
    if (s.can_run && !wanted.keeps_latency(c.now).value_or(false) && c.amortised >= known_.serves(wanted, running_, s.noticed, s.traffic)) {
      return c;
    }
    const std::optional<switch_time> cost = time_of_switch(s, plan);
    if (!cost) c.now.ended = false;
    const double payback = options_.payback.value(), beside = cost ? cost->beside_s : 0;
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
  /// Nothing runs for `pause_s`, after the old plan went on for `beside_s`, slower, while weights came.
  struct switch_time {
    double pause_s = 0, beside_s = 0;
    iteration meanwhile = {};  ///< of the old plan
  };
  /// Nothing where weights are missing. Weights that do not change come in the background, as far as there is room for them
  /// beside the running plan; the two share the network.
  [[nodiscard]] std::optional<switch_time> time_of_switch(const situation& s, std::size_t plan) {
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
  [[nodiscard]] std::optional<choice> best_of(const situation& s, const wish& wanted, const std::vector<candidate>& all) {
    std::optional<choice> best;
    for (const candidate& c : all) {
      const choice x = judged(s, wanted, c.plan, c.step, c.thinking);
      if (x.now.ended && (!best || rank(wanted, x) < rank(wanted, *best))) best = x;
    }
    if (best) known_.touch(best->plan);
    return best;
  }
  /// Those that keep the latency first, and of these those that also would if things got a little worse.
  [[nodiscard]] std::pair<int, serving> rank(const wish& wanted, const choice& c) const {
    const bool kept = wanted.keeps_latency(c.now).value_or(true), well = wanted.keeps_latency(c.now, options_.spare).value_or(true);
    return {kept ? (well ? 0 : 1) : 2, c.amortised};
  }
  [[nodiscard]] bool beats(const choice& a, const choice& b) const {
    return !b.now.ended || a.amortised.score * (1 + options_.tolerance) < b.amortised.score;
  }
  [[nodiscard]] bool holds(const situation& s, const wish& wanted, const choice& c) {
    if (const auto kept = wanted.keeps_latency(c.now)) return *kept;
    if (!c.now.ended || c.now.response_s > (1 + options_.tolerance) * reference_) return false;
    const auto best = best_of(s, wanted, known_ones());
    return !best || !beats(*best, c);
  }

  /// Where no latency is wanted, a plan may hold only because the running one was adopted in worse times. If weights have to
  /// move anyway, then to the best that there is.
  [[nodiscard]] bool is_worth_moving_for(const wish& wanted, const choice& c) const {
    return wanted.keeps_latency(c.now).has_value() || c.now.response_s <= (1 + options_.tolerance) * best_reference_;
  }

  [[nodiscard]] reaction first(const choice& c) {
    reference_ = best_reference_ = c.now.response_s;
    return {.next = known_[c.plan]};
  }
  [[nodiscard]] reaction adopt(const situation& s, const choice& c, switching how, const char* why) {
    reference_ = c.now.response_s;
    best_reference_ = std::min(best_reference_, reference_);
    if (!same_placement(known_[c.plan], *s.running)) moved_ = s.now + c.thinking;
    const seconds answers = s.can_run && c.step != rung::network ? std::min(s.since, lasts_since_) : s.since;
    return {.next = known_[c.plan], .how = how, .step = c.step, .thinking = c.thinking, .answers = answers, .reason = why};
  }

  const Problem* problem_;
  ladder_options options_;
  known_plans<Problem> known_;
  plan_search<Problem, Planner> plan_;
  remembered_replay replay_;
  detail::change_classifier changes_;
  std::size_t running_ = 0;           ///< where it can run
  double reference_ = 0;              ///< the response when the running plan was adopted
  double best_reference_ = 0;         ///< the least such response so far
  std::optional<seconds> moved_;      ///< when weights moved last
  std::optional<seconds> postponed_;  ///< ask again then
  seconds lasts_since_;               ///< the change that is being answered
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/ladder.ipp>
#endif
