// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The policies that others are compared with: never change, change the network's schedule only, always re-plan, and know
/// everything at no cost.

#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/adapt/known_plans.hpp>

namespace hetplan::adapt {

/// How long decisions take on the timeline: round numbers near what was measured (docs/performance.md, where a menu and the
/// largest pipelines take longer), so that a history does not depend on the machine that works it out.
struct thinking_times {
  seconds reschedule{0.05};
  seconds choose{0.001};   ///< among known plans, or a mixture of them
  seconds replay{0.01};    ///< lightweight re-planning
  seconds replan{1};
};

/// What most policies are told.
struct policy_options {
  double ignore = 0.1;  ///< a smaller relative change of the conditions is none (Dora, section 5)
  thinking_times thinking = {};
  schedule::refine_options network = {};
};

/// Runs one plan, come what may.
///
/// Source  "best single plan" of Dora, Fig 12.
class static_plan {
 public:
  explicit static_plan(plan first) : first_(std::move(first)) {}
  [[nodiscard]] reaction react(const situation& s) const {
    if (s.running == nullptr) return {.next = first_};
    return {};
  }

 private:
  plan first_;
};

namespace detail {

/// Tells news from noise: conditions against those of the last answer, traffic and wishes against the last ones heard.
class attention {
 public:
  explicit attention(double ignore) : ignore_(ignore) {}
  /// Is there anything to answer? What is answered is remembered.
  [[nodiscard]] bool is_news(const situation& s) {
    const bool news = !answered_ || change(*answered_, s.noticed) >= ignore_ || traffic_ != list(s.traffic) || wanted_ != s.wanted ||
                      !s.can_run || !s.dropped.empty();
    if (news) {
      answered_ = s.noticed;
      traffic_ = list(s.traffic);
      wanted_ = s.wanted;
    }
    return news;
  }

 private:
  double ignore_;
  std::optional<conditions> answered_;
  using flow_list = std::vector<std::tuple<device_id, device_id, int>>;
  [[nodiscard]] static flow_list list(std::span<const foreign_traffic> traffic) {
    flow_list all;
    for (const foreign_traffic& f : traffic) all.emplace_back(f.from, f.to, f.priority);
    return all;
  }
  flow_list traffic_;
  qoe_target wanted_;
};

}  // namespace detail

/// Keeps who computes what, and schedules the transfers anew when conditions change.
///
/// Source  Dora, section 4.3, phase 2 alone.
template <class Problem>
class network_only {
 public:
  network_only(const Problem& problem, plan first, policy_options options = {})
      : problem_(&problem), first_(std::move(first)), options_(options), known_(problem), attention_(options.ignore) {}

  [[nodiscard]] reaction react(const situation& s) {
    const bool news = attention_.is_news(s);
    if (s.running == nullptr) return {.next = first_};
    if (!news || !s.can_run) return {};
    const std::size_t running = known_.add(*s.running);
    const auto scheduled = known_.reschedule(running, s.noticed, s.traffic, s.wanted, options_.network);
    if (!scheduled) return {};
    const wish wanted(problem_->job, s);
    const auto serves = [&](std::size_t i) { return wanted.of(known_.try_out(i, s.noticed, s.traffic)); };
    if (serves(*scheduled) >= serves(running)) return {};
    return {.next = known_[*scheduled], .step = rung::network, .thinking = options_.thinking.reschedule, .reason = "transfers in another order"};
  }

 private:
  const Problem* problem_;
  plan first_;
  policy_options options_;
  known_plans<Problem> known_;
  detail::attention attention_;
};

/// Plans anew at every change and switches to the answer, however little it is better: what planners without a runtime do.
///
/// Source  Dora, section 4.3, which replaces it.
template <class Problem, class Planner>
class replan_always {
 public:
  replan_always(const Problem& problem, Planner planner, policy_options options = {})
      : problem_(&problem), options_(options), known_(problem), plan_(problem, std::move(planner)), attention_(options.ignore) {}

  [[nodiscard]] reaction react(const situation& s) {
    if (!attention_.is_news(s)) return {};
    const plan_result& found = plan_(s.noticed, s.traffic, s.wanted);
    if (found.plans.empty()) return {.reason = found.status.reason};
    const auto best = known_.best(wish(problem_->job, s), s.noticed, s.traffic, found.plans);
    if (!best) return {.reason = "no plan of the planner's can run"};
    if (s.running != nullptr && known_[*best] == *s.running) return {};
    return {.next = known_[*best], .how = switching::background, .step = rung::replanned, .thinking = options_.thinking.replan,
            .reason = "the planner's answer to the change"};
  }

 private:
  const Problem* problem_;
  policy_options options_;
  known_plans<Problem> known_;
  replanning<Problem, Planner> plan_;
  detail::attention attention_;
};

/// Knows every change as it happens, and at once runs the best of all plans it ever met and of those that the planner finds
/// for the moment, at no cost. What the others could reach at most with this planner, but for luck; not a bound for jobs
/// with a deadline, whose future it does not know (clairvoyant.hpp).
///
/// Source  the "optimal oracle" of Dora, section 6.3, Fig 16.
template <class Problem, class Planner>
class oracle {
 public:
  oracle(const Problem& problem, Planner planner) : problem_(&problem), known_(problem), plan_(problem, std::move(planner)) {}

  [[nodiscard]] reaction react(const situation& s) {
    const plan_result& found = plan_(s.noticed, s.traffic, s.wanted);
    for (const plan& p : found.plans) known_.add(p);
    const auto best = known_.best(wish(problem_->job, s), s.noticed, s.traffic);
    if (!best) return {.reason = found.status.reason};
    if (s.running != nullptr && known_[*best] == *s.running) return {};
    return {.next = known_[*best], .how = switching::at_no_cost, .step = rung::known_plan, .reason = "the best plan of the moment"};
  }

 private:
  const Problem* problem_;
  known_plans<Problem> known_;
  replanning<Problem, Planner> plan_;
};

}  // namespace hetplan::adapt
