// SPDX-License-Identifier: BSL-1.0
#pragma once
/// When asking the planner again may pay: what was tried under which conditions, and what it brought.

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/adapt/replanning.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// How far conditions are from others, in parts of 10 %: the largest factor between two speeds or capacities; infinite between 0
/// and more.
[[nodiscard]] double distance(const conditions& a, const conditions& b);

/// Asks a planner where that may pay, and says what it answered for the most similar moment where it may not.
///
/// Moments whose rounded conditions are the same are one. A search that brings nothing better than the plans that are known
/// already, by 1 %, is *futile*, and the next one waits: `first_wait` steps, after each futile one in a row twice as many. A question about
/// other conditions is a step for each 10 % that they are away from what was tried, 8 at most; and so are ten seconds, so that what
/// lasts is answered. A search that helps ends the waiting; another set of devices that work and other wishes each have a waiting
/// of their own, and a deadline that comes in reach ends it. While nothing can run, no wait is longer than 8 steps.
///
/// With a deadline it is asked for the pace that is left: for all iterations in the time in which they would have to be done to end the
/// rest in time, rounded up as conditions are rounded.
///
/// Complexity   O(moments) to look one up; a search is the planner's, and a simulation of each known plan.
/// Determinism  yes: it counts questions and the seconds of the timeline.
/// Source       ours. Dora, section 5, asks for no new partition within 10 %.
template <class Problem, class Planner>
class plan_search {
 public:
  static constexpr double first_wait = 2, longest_wait = 1024;
  static constexpr std::size_t most_moments = 32, most_groups = 16;

  plan_search(const Problem& problem, Planner planner, std::shared_ptr<planning_memory> memory = {})
      : problem_(&problem), plan_(problem, std::move(planner), std::move(memory)) {}

  /// Would the planner be asked now? To be called before what is as dear as a search.
  [[nodiscard]] bool may_pay(const situation& s, const qoe_target& wanted) {
    const conditions now = rounded(offered(s.noticed, s.traffic, problem_->cluster.network()), problem_->cluster);
    const group& g = group_of(now, wanted);
    const moment* near = nearest(g, now);
    if (near == nullptr || outgrown(*near, left_of(wanted, s))) return true;
    const double d = distance(near->conditions, now);
    return d >= 1 && g.steps + step(g, now, d) + lasted(g, s) >= g.wait;
  }
  /// When the last question that was not passed on would be, if nothing changes until then.
  [[nodiscard]] std::optional<seconds> ask_again() const { return ask_again_; }

  /// Plans of the whole cluster's numbering, best first when they were found. Those of a search are known from then on, until they
  /// are forgotten: who takes a remembered answer tries it anew.
  [[nodiscard]] const plan_result& operator()(known_plans<Problem>& known, const situation& s, const qoe_target& wanted) {
    const conditions now = rounded(offered(s.noticed, s.traffic, problem_->cluster.network()), problem_->cluster);
    group& g = group_of(now, wanted);
    const qoe_target left = left_of(wanted, s);
    const moment* near = nearest(g, now);
    ask_again_.reset();
    if (near != nullptr && !outgrown(*near, left)) {
      const double d = distance(near->conditions, now);
      if (d < 1) return near->answer;
      g.steps += step(g, now, d);
      g.last = now;
      if (const double missing = g.wait - g.steps - lasted(g, s); missing > 0) {
        ask_again_ = s.now + missing * a_step;
        return near->answer;
      }
    }
    const wish wants(problem_->job, s);
    const auto serves = [&](std::optional<std::size_t> i) {
      return i ? known.serves(wants, *i, s.noticed, s.traffic) : wants.of(iteration{});
    };
    const serving before = serves(known.best(wants, s.noticed, s.traffic));
    plan_result found = plan_(s.noticed, s.traffic, left);
    const serving after = serves(known.best(wants, s.noticed, s.traffic, found.plans));
    const bool futile = !g.moments.empty() && !is_better(after, before);
    g.wait = futile ? std::clamp(2 * g.wait, first_wait, std::isinf(before.score) ? farthest : longest_wait) : 0;
    g.steps = 0;
    g.last = now;
    g.since = s.now;
    if (g.moments.size() == most_moments) g.moments.pop_back();
    g.moments.push_front({now, std::move(found), pace(left)});
    return g.moments.front().answer;
  }

 private:
  static constexpr double farthest = 8;     ///< steps of one question
  static constexpr double most_paces = 12;  ///< either way: a tenth, or ten times
  static constexpr seconds a_step{10};

  struct moment {
    adapt::conditions conditions;
    plan_result answer;
    double pace_s;  ///< what an iteration may take until the deadline; infinite without one
  };
  struct group {
    std::vector<char> works;
    qoe_target wanted;
    std::list<moment> moments = {};  ///< the last first
    double wait = 0, steps = 0;
    seconds since = {};    ///< the last search
    conditions last = {};  ///< that were asked about
  };

  [[nodiscard]] static double step(const group& g, const conditions& now, double d) { return g.last == now ? 0 : std::min(d, farthest); }
  [[nodiscard]] static double lasted(const group& g, const situation& s) { return (s.now - g.since) / a_step; }

  [[nodiscard]] static bool is_better(const serving& a, const serving& b) {
    constexpr double gain = 0.01;
    if (a.late_s != b.late_s) return a.late_s < (1 - gain) * b.late_s;
    return std::isinf(b.score) ? a.score < b.score : a.score < b.score - gain * std::abs(b.score);
  }
  [[nodiscard]] static double pace(const qoe_target& left) {
    if (!left.deadline || !left.iterations) return std::numeric_limits<double>::infinity();
    return left.deadline->value() / static_cast<double>(*left.iterations);
  }
  /// When all plans were late only the fastest were looked for; now there may be time for others.
  [[nodiscard]] static bool outgrown(const moment& m, const qoe_target& left) {
    if (m.answer.plans.empty() || !m.answer.plans.front().predicted) return false;
    const double fastest = m.answer.plans.front().predicted->latency.value();
    return fastest > m.pace_s && fastest < 0.9 * pace(left);
  }
  /// The job at the pace that is left to it, rounded up to one of few: the planner is asked for what serves until the deadline.
  [[nodiscard]] static qoe_target left_of(qoe_target wanted, const situation& s) {
    if (!wanted.deadline || !wanted.iterations) return wanted;
    const qoe_target rest{.deadline = *wanted.deadline - s.now, .iterations = std::max(1LL, *wanted.iterations - s.done)};
    const double k = *rest.deadline > seconds{} ? std::ceil(rounding_steps(pace(rest) / pace(wanted)) - 1e-9) : -most_paces;
    wanted.deadline = seconds(rounded_value(wanted.deadline->value(), std::lround(std::clamp(k, -most_paces, most_paces))));
    return wanted;
  }
  [[nodiscard]] group& group_of(const conditions& now, const qoe_target& wanted) {
    std::vector<char> works;
    for (const device& d : problem_->cluster.devices()) works.push_back(now.works(d.id) ? 1 : 0);
    const auto it = std::find_if(groups_.begin(), groups_.end(), [&](const group& g) { return g.works == works && g.wanted == wanted; });
    if (it != groups_.end()) {
      groups_.splice(groups_.begin(), groups_, it);
    } else {
      if (groups_.size() == most_groups) groups_.pop_back();
      groups_.push_front({std::move(works), wanted});
    }
    return groups_.front();
  }
  [[nodiscard]] static const moment* nearest(const group& g, const conditions& now) {
    const moment* best = nullptr;
    double least = 0;
    for (const moment& m : g.moments) {
      const double d = distance(m.conditions, now);
      if (best != nullptr && d >= least) continue;
      best = &m;
      least = d;
    }
    return best;
  }

  const Problem* problem_;
  replanning<Problem, Planner> plan_;
  std::list<group> groups_;  ///< the last first
  std::optional<seconds> ask_again_;
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/plan_search.ipp>
#endif
