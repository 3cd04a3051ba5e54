// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What candidate_judged tells: one count over a whole call of a planner, however many parts it has.

#include <algorithm>
#include <optional>

#include <hetplan/plan/any_objective.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan {

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

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/candidate_rounds.ipp>
#endif
