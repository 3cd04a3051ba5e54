// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Ranking of candidate plans under one judge: the best plans that keep the limits, or the reason why none does.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// Progress of a planner's call over all its parts. `judged` rises by one, `total` is at least `judged`, and judged / total never falls.
struct candidate_count {
  long long judged = 0;
  long long total = 0;

  /// Counts one more candidate, given an estimate of their total.
  void next(long long estimate) {
    const long long most = judged > 0 ? total + total / judged : 1LL << 60;  // (judged + 1) / most >= judged / total
    ++judged;
    total = std::clamp(estimate, judged, most);
  }
};

/// Combines several planners, or rounds of one planner, into one for an observer: counts continue from part to part, and the best plan is
/// that of all parts. The number of parts is known; all are assumed to take equally long.
///
///     candidate_rounds rounds(2, objective, observer);
///     plan_result found = recipes::dora_partitioner(problem, objective, keep, rounds.part());
///     plan_result best = schedule::refine_judged(problem, objective, found.plans, keep, {}, rounds.part());
///
/// Complexity   O(1) per candidate; the best one so far is copied.
/// Determinism  yes.
/// Source       our own.
class candidate_rounds {
 public:
  /// @param parts     >= 1; some may not take place.
  /// @param observer  held by value, like `objective`; objects that it refers to must outlive this one.
  candidate_rounds(int parts, any_objective objective, const candidate_observer& observer);
  candidate_rounds(const candidate_rounds&) = delete;  // part() returns references to it
  candidate_rounds& operator=(const candidate_rounds&) = delete;

  /// Returns the observer of the next part, which refers to this object; empty if the observer is empty.
  [[nodiscard]] candidate_observer part();
  control operator()(const candidate_judged& c);

 private:
  int parts_;
  int begun_ = 0;
  any_objective objective_;
  candidate_observer observer_;
  candidate_count count_;
  std::optional<ranked_plan> best_;
  double best_score_ = 0;
  bool estimated_ = false;
};

/// Limits above which a run's microbatches or generation steps make it long (runs_long).
inline constexpr int most_microbatches_in_full = 512, most_tokens_in_full = 128;

/// Returns true if a plan is judged by shorter runs. Explicit orders and transfer rules name every microbatch and exclude this.
[[nodiscard]] bool runs_long(const plan& p);

/// An evaluation and its cost in steps; see step_budget.
struct quick_judgement {
  hetplan::evaluation evaluation;
  long long steps = 0;
};

namespace detail {

/// Returns b + times (b - a), at least 0, for every number of the evaluations.
[[nodiscard]] evaluation extrapolate(const evaluation& a, const evaluation& b, double times);

}  // namespace detail

/// Returns the evaluation by `judge`, for a long run extrapolated from two short runs: one in which the pipeline fills, and one twice as
/// long. Exact if every further microbatch and token adds the same, which is nearly true for a full pipeline.
///
/// Complexity  judge of at most some hundred microbatches and tokens.
/// Throws      as judge.
/// Source      ours: a search ranks hundreds of candidates; only its result is judged in full.
[[nodiscard]] quick_judgement judge_quickly(const planning_problem& problem, const plan& p);

/// Throws invalid_input if `keep`, the number of requested plans, is below 1.
void check_keep(int keep, const char* who);

/// Returns all layers of a model, in its topological numbering.
[[nodiscard]] std::vector<layer_id> all_layers(const planning_graph& model);

/// Returns judge_quickly of a plan; where devices have tiers, after it got the offload that it needs and no other (fit_offload).
[[nodiscard]] quick_judgement judge_offloaded(const planning_problem& problem, plan& p);

/// Ranking of candidates, simulated in the order of arrival, by score, then fewer stages, then arrival. Bounds are computed at the end, for
/// the kept plans only: an objective sees them as 0.
///
/// Long runs are ranked by judge_quickly. The plans of the result are judged in full, and so is the nearest candidate if none keeps the
/// limits: a result contains no estimates. The next best plans replace those that break a limit in full.
///
/// Where devices have tiers, a candidate is judged with the offload that it needs and no other (judge_offloaded).
///
/// Once the problem's budget is spent, no candidate but the first is judged, and the result is `stopped`.
///
/// Determinism  yes, except for `elapsed`.
/// Throws       invalid_input (keep < 1).
class ranking {
 public:
  ranking(const planning_problem& problem, const any_objective& objective, int keep);
  /// Continues a budget that a search has partly spent.
  ranking(const planning_problem& problem, const any_objective& objective, int keep, const step_budget& budget);
  ranking(const planning_problem&& the_problem_must_outlive_it, const any_objective&, int) = delete;
  ranking(const planning_problem&& the_problem_must_outlive_it, const any_objective&, int, const step_budget&) = delete;

  /// Judges a candidate and reports candidate_judged; returns the observers' answer. A candidate that needs a missing route, has too many
  /// tasks or does not keep the job's pins does not fit. Throws invalid_model of the problem's models.
  ///
  /// @param total  estimate of the number of candidates, corrected by candidate_count.
  control consider(plan candidate, long long total, const candidate_observer& observer = {});
  control consider(plan candidate, evaluation e, long long total, const candidate_observer& observer = {});

  /// Adds a candidate that another planner has judged and reported. It competes but is not counted again.
  void know(ranked_plan candidate);

  [[nodiscard]] bool last_fitted() const { return last_fitted_; }
  [[nodiscard]] bool any_fitted() const { return !best_.empty(); }
  [[nodiscard]] step_budget& budget() { return budget_; }
  /// Returns true if the budget is spent, and records that work was left out, so that the result says so.
  [[nodiscard]] bool out_of_steps();
  /// Records that work was left out for lack of budget.
  void cut() { cut_ = true; }
  /// Returns the best plans so far, best first; predictions of long runs are estimates.
  [[nodiscard]] std::vector<ranked_plan> kept() const;
  /// Returns the candidates with the least excess over the limits, nearest first; empty once one keeps the limits.
  [[nodiscard]] std::vector<plan> nearest() const;

  /// Returns the K best plans with their bounds. Without plans: the binding limit of the nearest candidate, or the missing route;
  /// infeasible if a relaxation of the problem proves it (prove_infeasible), else none_found with the candidates tried.
  [[nodiscard]] plan_result result() && { return std::move(*this).result(keep_); }
  /// Returns at most `keep` plans.
  [[nodiscard]] plan_result result(int keep) &&;

 private:
  struct entry {
    double score;
    ranked_plan what;
    bool estimated;  ///< true if judged by judge_quickly
  };

  control tell(long long total, const candidate_observer& observer);
  /// Returns true if the plan keeps the job's pins, and remembers the first one that a plan does not keep.
  bool keeps_pins(const plan& p);
  void remember_planner(const plan& p);
  /// Parts of the reason for a result without plans: the limit that the nearest candidate breaks, and the number of candidates by planner.
  [[nodiscard]] std::string why_none() const;
  [[nodiscard]] std::string tried() const;

  /// Returns nothing if the simulator cannot judge the plan: a route is missing, or there are too many tasks.
  std::optional<evaluation> judged(plan& p, bool quickly);
  /// Replaces estimates by full judgements, for `keep` plans as far as the budget allows. While none fits, the first `keep_` are judged
  /// regardless of the budget.
  void judge_in_full(int keep);
  bool take_in_full(plan&& p);
  /// Ranks a plan that keeps all limits and returns true; remembers the nearest of the others.
  bool take(ranked_plan&& candidate, bool estimated);
  /// Inserts a plan, and drops those with `keep_` fully judged plans before them.
  void insert(ranked_plan&& candidate, bool estimated);

  const planning_problem& problem_;
  any_objective objective_;
  int keep_;
  stopwatch clock_;
  std::vector<entry> best_;                                  ///< best first
  int in_full_ = 0;                                          ///< number of fully judged plans in best_
  std::vector<std::pair<double, plan>> near_;                ///< (overflow, candidate), ascending; empty once one fits
  std::optional<broken_limit> nearest_;                      ///< least broken limit, by full judgements
  std::optional<std::pair<double, plan>> nearest_estimate_;  ///< (overflow, candidate) by judge_quickly
  std::vector<std::string> planners_;                        ///< names of the candidates' planners
  std::string pin_;                                          ///< the first pin that a candidate has not kept, with its planner
  std::string not_judged_;                                   ///< reason why the first unjudged candidate could not be simulated
  step_budget budget_{problem_.steps};
  candidate_count count_;
  bool last_fitted_ = false, stopped_ = false;
  bool cut_ = false;  ///< true if the budget cut the work
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/ranking.ipp>
#endif
