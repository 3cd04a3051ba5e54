// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search asks the judge of a long run: two short runs, and what every further microbatch or token adds.

#include <hetplan/plan/evaluation.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

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

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/quick_judgement.ipp>
#endif
