// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Candidates under one judge: keeps the best that fit, or the reason why none does.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/step_budget.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/objective.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/quick_judgement.hpp>

namespace HETPLAN_NAMESPACE {

/// What every planner is given: the nouns of the problem and the user's models. Model and cluster must
/// outlive it; the models are copied.
///
///     const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
template <cost_model Cost, class Models = judge_models<>, lp_solver Lp = no_lp>
struct planning_problem {
  const planning_graph& model;
  const hetplan::cluster& cluster;
  Cost cost;
  hetplan::job job = {};
  Models models = {};
  Lp lp = {};
  long long steps = standard_steps;  ///< that a planner may take; see step_budget

  /// A plan of this job with nothing decided yet.
  [[nodiscard]] plan blank(std::string planner, int microbatch_size) const {
    plan p{.model = model.name(),
           .cluster = cluster.name(),
           .planner = std::move(planner),
           .workload = job.workload,
           .microbatch_size = microbatch_size,
           .microbatches = job.batch / microbatch_size};
    p.schedule.kind = job.schedule;
    return p;
  }
};
template <class Cost>
planning_problem(const planning_graph&, const cluster&, Cost) -> planning_problem<Cost>;
template <class Cost>
planning_problem(const planning_graph&, const cluster&, Cost, job) -> planning_problem<Cost>;
template <class Cost, class Models>
planning_problem(const planning_graph&, const cluster&, Cost, job, Models) -> planning_problem<Cost, Models>;
template <class Cost, class Models, class Lp>
planning_problem(const planning_graph&, const cluster&, Cost, job, Models, Lp) -> planning_problem<Cost, Models, Lp>;

/// Throws invalid_input where a planner is asked for no plan at all.
inline void check_keep(int keep, const char* who) {
  if (keep < 1) throw invalid_input(std::string(who) + ": keep = " + std::to_string(keep) + "; expected an integer >= 1");
}

/// Every layer of a model, in its topological numbering.
[[nodiscard]] inline std::vector<layer_id> all_layers(const planning_graph& model) {
  std::vector<layer_id> layers;
  for (const layer& l : model.layers()) layers.push_back(l.id);
  return layers;
}

/// Simulates candidates as they come and ranks them: score first, then fewer stages, then first come. Bounds
/// come last, for the plans that are kept: an objective sees them as 0.
///
/// Runs that are long are judged quickly at first, which ranks them. Those that the answer holds are judged in full, and so is
/// the candidate that comes nearest where none fits: an answer has no estimates. The next best take the places of those that
/// break a limit in full.
///
/// It keeps to the problem's budget: when that is spent, further candidates are not judged, but for the first, and the answer
/// is `stopped`.
///
/// Determinism  yes, but for `elapsed`.
/// Throws       invalid_input (keep < 1).
template <class Problem, class Objective>
class ranking {
 public:
  ranking(const Problem& problem, const Objective& objective, int keep) : problem_(problem), objective_(objective), keep_(keep) {
    check_keep(keep, "planner");
  }
  /// With a budget of which a search has spent some.
  ranking(const Problem& problem, const Objective& objective, int keep, const step_budget& budget) : ranking(problem, objective, keep) {
    budget_ = budget;
  }

  /// Judges a candidate; one that needs a route that is missing does not fit. Sends candidate_judged; answers what the
  /// observers say.
  template <class... Observers>
  flow consider(plan candidate, long long total, Observers&... observers) {
    if (judged_ > 0 && out_of_steps()) return flow::stop;
    const bool estimated = runs_long(candidate);
    std::optional<evaluation> e = judged(candidate, true);
    last_fitted_ = e && take(std::move(candidate), *std::move(e), estimated);
    return tell(total, observers...);
  }
  /// The same for a candidate that the simulator has judged already.
  template <class... Observers>
  flow consider(plan candidate, evaluation e, long long total, Observers&... observers) {
    last_fitted_ = take(std::move(candidate), std::move(e), false);
    return tell(total, observers...);
  }

  /// Did the last candidate keep all limits?
  [[nodiscard]] bool last_fitted() const { return last_fitted_; }
  [[nodiscard]] bool any_fitted() const { return !best_.empty(); }
  /// What searches beside the ranking take, too.
  [[nodiscard]] step_budget& budget() { return budget_; }
  /// For who has more to do: does the budget forbid it? Then the answer will say so.
  [[nodiscard]] bool out_of_steps() {
    cut_ = cut_ || budget_.spent();
    return cut_;
  }
  /// Something was left out for the budget's sake.
  void cut() { cut_ = true; }
  /// The best so far, best first; what is predicted of those that run long is an estimate.
  [[nodiscard]] std::vector<plan> kept() const {
    std::vector<plan> plans;
    for (const ranked& r : best_) {
      if (plans.size() < static_cast<std::size_t>(keep_)) plans.push_back(r.plan);
    }
    return plans;
  }

  /// The K best, certified; or infeasible with the limit that binds in the candidate that came nearest, or the missing route.
  [[nodiscard]] plan_result result() && { return std::move(*this).result(keep_); }
  /// No more than `keep` of them.
  [[nodiscard]] plan_result result(int keep) && {
    if (in_full_ != static_cast<int>(best_.size()) || best_.empty()) judge_in_full(keep);
    if (best_.size() > static_cast<std::size_t>(keep)) best_.resize(static_cast<std::size_t>(keep));
    plan_result r;
    r.candidates = judged_;
    for (auto& [score, p, estimated] : best_) {
      evaluation& e = *p.predicted;
      const auto alike = [&](const plan& other) { return shards_state(other) == shards_state(p); };
      const auto known = std::find_if(r.plans.begin(), r.plans.end(), alike);
      if (known == r.plans.end()) {
        certify(e, p, problem_.model, problem_.cluster, problem_.cost, problem_.models.memory, problem_.lp);
      } else {  // one job, and all within memory: one bound
        e.bound = known->predicted->bound;
        e.gap = gap_to(e.latency, e.bound);
      }
      r.plans.push_back(std::move(p));
    }
    if (stopped_) {
      r.status = {outcome::stopped, "stopped by an observer after " + std::to_string(judged_) + " candidates"};
    } else if (cut_) {
      r.status = {outcome::stopped, hetplan::out_of_steps(problem_.steps, judged_)};
      r.out_of_steps = true;
    } else if (r.plans.empty()) {
      r.binding = nearest_;
      const std::string none = not_judged_.empty() ? "no candidate plan exists" : not_judged_;
      r.status = {outcome::infeasible, nearest_ ? to_string(*nearest_, problem_.cluster) : none};
    }
    r.steps = budget_.used();
    r.elapsed = seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count());
    return r;
  }

 private:
  struct ranked {
    double score;
    hetplan::plan plan;
    bool estimated;  ///< judged quickly
  };

  template <class... Observers>
  flow tell(long long total, Observers&... observers) {
    ++judged_;
    const plan* best = best_.empty() ? nullptr : &best_.front().plan;
    const flow answer = notify(candidate_judged{judged_, total, best, best != nullptr && best_.front().estimated}, observers...);
    stopped_ = stopped_ || answer == flow::stop;
    return answer;
  }

  /// Nothing where the simulator cannot say: a route is missing, or there are too many tasks.
  std::optional<evaluation> judged(const plan& p, bool quickly) {
    if (const auto size = too_large_an_expansion(p, problem_.model)) {
      if (not_judged_.empty()) {
        not_judged_ = "a plan of " + to_text(*size) + " tasks and transfers; at most " + to_text(max_expansion) + " can be simulated";
      }
      return std::nullopt;
    }
    try {
      if (quickly) {
        quick_judgement q = judge_quickly(problem_, p);
        budget_.spend(q.steps);
        return std::move(q.evaluation);
      }
      judgement j = judge(p, problem_.model, problem_.cluster, problem_.cost, problem_.models);
      budget_.spend(static_cast<long long>(j.graph.size()));
      return std::move(j.evaluation);
    } catch (const missing_route& m) {
      if (not_judged_.empty()) not_judged_ = m.what();
      return std::nullopt;
    }
  }
  /// Estimates give way to judgements in full: of as many plans as wanted, and as the budget has room for; while none fits,
  /// of the first `keep_`, whatever the budget.
  void judge_in_full(int keep) {
    std::vector<ranked> candidates;
    candidates.swap(best_);
    in_full_ = 0;
    int fitting = 0, tried = 0;
    for (ranked& candidate : candidates) {
      if (!candidate.estimated) {
        ++fitting;
        evaluation e = *std::move(candidate.plan.predicted);
        static_cast<void>(take(std::move(candidate.plan), std::move(e), false));
      } else if (fitting < keep) {
        if (budget_.spent() && (fitting > 0 || tried >= keep_)) {
          cut_ = true;
          continue;
        }
        ++tried;
        fitting += take_in_full(std::move(candidate.plan)) ? 1 : 0;
      }
    }
    const bool is_nearest = nearest_estimate_ && (!nearest_ || nearest_estimate_->first < nearest_->overflow());
    if (best_.empty() && is_nearest) static_cast<void>(take_in_full(std::move(nearest_estimate_->second)));
  }
  bool take_in_full(plan&& p) {
    std::optional<evaluation> e = judged(p, false);
    return e && take(std::move(p), *std::move(e), false);
  }
  /// Ranks a plan that keeps all limits; of those that do not, the nearest is remembered. Does it?
  bool take(plan&& p, evaluation&& e, bool estimated) {
    const auto limit = find_broken_limit(e, problem_.cluster);
    if (!limit) {
      insert(std::move(p), std::move(e), estimated);
    } else if (estimated) {
      if (!nearest_estimate_ || limit->overflow() < nearest_estimate_->first) nearest_estimate_.emplace(limit->overflow(), std::move(p));
    } else if (!nearest_ || limit->overflow() < nearest_->overflow()) {
      nearest_ = limit;
    }
    return !limit;
  }
  /// A plan is of no use any more once `keep_` that were judged in full are before it.
  void insert(plan&& p, evaluation&& e, bool estimated) {
    const double score = hetplan::score(objective_, e);
    if (std::isnan(score))
      throw invalid_model("objective: score(a plan of latency " + to_text(e.latency.value()) + " s) = nan; expected a number");
    p.predicted = std::move(e);
    const auto key = [](double s, const plan& x) { return std::pair(s, x.stages.size()); };
    const auto at = std::find_if(best_.begin(), best_.end(), [&](const ranked& b) { return key(score, p) < key(b.score, b.plan); });
    best_.insert(at, {score, std::move(p), estimated});
    in_full_ += estimated ? 0 : 1;
    while (in_full_ - (best_.back().estimated ? 0 : 1) >= keep_) {
      in_full_ -= best_.back().estimated ? 0 : 1;
      best_.pop_back();
    }
  }

  const Problem& problem_;
  const Objective& objective_;
  int keep_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<ranked> best_;                                 ///< best first
  int in_full_ = 0;                                          ///< of those, judged in full
  std::optional<broken_limit> nearest_;                      ///< in full
  std::optional<std::pair<double, plan>> nearest_estimate_;  ///< overflow and candidate
  std::string not_judged_;                                   ///< why the first candidate that could not be simulated could not be
  step_budget budget_{problem_.steps};
  long long judged_ = 0;
  bool last_fitted_ = false, stopped_ = false;
  bool cut_ = false;  ///< by the budget
};

}  // namespace HETPLAN_NAMESPACE
