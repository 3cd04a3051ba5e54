// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Candidates under one judge: keeps the best that fit, or the reason why none does.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

// What candidate_judged tells: one count over a whole call of a planner, however many parts it has.

/// How many candidates have been judged, of how many. `judged` rises by one, `total` is never less, and judged / total never falls.
struct candidate_count {
  long long judged = 0;
  long long total = 0;

  /// One more, of about so many.
  void next(long long estimate) {
    const long long most = judged > 0 ? total + total / judged : 1LL << 60;  // (judged + 1) / most >= judged / total
    ++judged;
    total = std::clamp(estimate, judged, most);
  }
};

/// Several planners, or several rounds of one, that an observer sees as one planner: the counts go on from part to part, and the best
/// so far is that of all parts. Their number is known; each is taken to be as long as any other.
///
///     candidate_rounds rounds(2, objective, observer);
///     plan_result found = recipes::dora_partitioner(problem, objective, keep, rounds.part());
///     plan_result best = schedule::refine(problem, objective, found.plans, keep, {}, rounds.part());
///
/// Complexity   O(1) a candidate; one that is the best so far is copied.
/// Determinism  yes.
/// Source       our own.
class candidate_rounds {
 public:
  /// @param parts     >= 1, of which some may not take place.
  /// @param observer  and `objective` are held by value; what an observer refers to must outlive this.
  candidate_rounds(int parts, any_objective objective, const candidate_observer& observer);
  candidate_rounds(const candidate_rounds&) = delete;  // what part() gives refers to it
  candidate_rounds& operator=(const candidate_rounds&) = delete;

  /// The observer of the next part; empty where nobody observes. Refers to this.
  [[nodiscard]] candidate_observer part();
  control operator()(const candidate_judged& c);

 private:
  int parts_;
  int begun_ = 0;
  any_objective objective_;
  candidate_observer observer_;
  candidate_count count_;
  std::optional<plan> best_;
  double best_score_ = 0;
  bool estimated_ = false;
};

// What a search asks the judge of a long run: two short runs, and what every further microbatch or token adds.

/// Runs of more microbatches, or of more steps of generation, are long.
inline constexpr int most_microbatches_in_full = 512, most_tokens_in_full = 128;

/// Is a plan judged by shorter runs of it? Not with orders or rules of its own, for they name every microbatch.
[[nodiscard]] bool runs_long(const plan& p);

/// An evaluation, and the steps that it took; see step_budget.
struct quick_judgement {
  hetplan::evaluation evaluation;
  long long steps = 0;
};

namespace detail {

/// Every number of b, and `times` what it has over a.
[[nodiscard]] evaluation extrapolate(const evaluation& a, const evaluation& b, double times);

}  // namespace detail

/// What `judge` says of a plan; of one that runs long: an estimate from a run in which the pipeline fills, and one twice as long.
/// Exact where every further microbatch and token adds the same, which a pipeline that has filled comes close to.
///
/// Complexity  judge of at most some hundred microbatches and tokens.
/// Throws      as judge.
/// Source      ours: a search ranks hundreds of candidates; the answer is judged in full.
[[nodiscard]] quick_judgement judge_quickly(const planning_problem& problem, const plan& p);

/// Throws invalid_input where a planner is asked for no plan at all.
void check_keep(int keep, const char* who);

/// Every layer of a model, in its topological numbering.
[[nodiscard]] std::vector<layer_id> all_layers(const planning_graph& model);

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
class ranking {
 public:
  ranking(const planning_problem& problem, const any_objective& objective, int keep);
  /// With a budget of which a search has spent some.
  ranking(const planning_problem& problem, const any_objective& objective, int keep, const step_budget& budget);
  ranking(const planning_problem&& the_problem_must_outlive_it, const any_objective&, int) = delete;
  ranking(const planning_problem&& the_problem_must_outlive_it, const any_objective&, int, const step_budget&) = delete;

  /// Judges a candidate; one that needs a route that is missing does not fit. Sends candidate_judged; answers what the
  /// observers say.
  ///
  /// @param total  an estimate of how many there will be; candidate_count corrects it.
  control consider(plan candidate, long long total, const candidate_observer& observer = {});
  /// The same for a candidate that the simulator has judged already.
  control consider(plan candidate, evaluation e, long long total, const candidate_observer& observer = {});

  /// A candidate with its prediction that another planner has judged and told of: it competes and is not counted again.
  void know(plan candidate);

  /// Did the last candidate keep all limits?
  [[nodiscard]] bool last_fitted() const { return last_fitted_; }
  [[nodiscard]] bool any_fitted() const { return !best_.empty(); }
  /// What searches beside the ranking take, too.
  [[nodiscard]] step_budget& budget() { return budget_; }
  /// For who has more to do: does the budget forbid it? Then the answer will say so.
  [[nodiscard]] bool out_of_steps();
  /// Something was left out for the budget's sake.
  void cut() { cut_ = true; }
  /// The best so far, best first; what is predicted of those that run long is an estimate.
  [[nodiscard]] std::vector<plan> kept() const;
  /// While none fits: a few that come nearest, nearest first.
  [[nodiscard]] std::vector<plan> nearest() const;

  /// The K best, certified; or the limit that binds in the candidate that came nearest, or the missing route: infeasible where a
  /// relaxation of the problem proves it (prove_infeasible), else none found, with what was tried.
  [[nodiscard]] plan_result result() && { return std::move(*this).result(keep_); }
  /// No more than `keep` of them.
  [[nodiscard]] plan_result result(int keep) &&;

 private:
  struct ranked {
    double score;
    hetplan::plan plan;
    bool estimated;  ///< judged quickly
  };

  control tell(long long total, const candidate_observer& observer);
  void remember_planner(const plan& p);
  /// Of an answer without plans: what the candidate that came nearest breaks, and how many candidates of whom there were.
  [[nodiscard]] std::string why_none() const;
  [[nodiscard]] std::string tried() const;

  /// Nothing where the simulator cannot say: a route is missing, or there are too many tasks.
  std::optional<evaluation> judged(const plan& p, bool quickly);
  /// Estimates give way to judgements in full: of as many plans as wanted, and as the budget has room for; while none fits,
  /// of the first `keep_`, whatever the budget.
  void judge_in_full(int keep);
  bool take_in_full(plan&& p);
  /// Ranks a plan that keeps all limits; of those that do not, the nearest is remembered. Does it?
  bool take(plan&& p, evaluation&& e, bool estimated);
  /// A plan is of no use any more once `keep_` that were judged in full are before it.
  void insert(plan&& p, evaluation&& e, bool estimated);

  const planning_problem& problem_;
  any_objective objective_;
  int keep_;
  stopwatch clock_;
  std::vector<ranked> best_;                                 ///< best first
  int in_full_ = 0;                                          ///< of those, judged in full
  std::vector<std::pair<double, plan>> near_;                ///< overflow and candidate, least first; empty once one fits
  std::optional<broken_limit> nearest_;                      ///< in full
  std::optional<std::pair<double, plan>> nearest_estimate_;  ///< overflow and candidate
  std::vector<std::string> planners_;                        ///< whose candidates were judged
  std::string not_judged_;                                   ///< why the first candidate that could not be simulated could not be
  step_budget budget_{problem_.steps};
  candidate_count count_;
  bool last_fitted_ = false, stopped_ = false;
  bool cut_ = false;  ///< by the budget
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/search/ranking.ipp>
#endif
