// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search asks the judge of a long run: two short runs, and what every further microbatch or token adds.

#include <utility>

#include <hetplan/simulate/evaluate.hpp>

namespace HETPLAN_NAMESPACE {

/// Runs of more microbatches, or of more steps of generation, are long.
inline constexpr int most_microbatches_in_full = 512, most_tokens_in_full = 128;

namespace detail {

/// Microbatches, or tokens, after which the pipeline of a plan has filled.
[[nodiscard]] inline int filled_after(const plan& p) { return 16 + 4 * static_cast<int>(p.stages.size()); }

[[nodiscard]] bool has_many_tokens(const plan& p);

}  // namespace detail

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
template <class Problem>
[[nodiscard]] quick_judgement judge_quickly(const Problem& problem, const plan& p) {
  if (runs_long(p)) {
    const int filled = detail::filled_after(p);
    plan shorter = p, longer = p;
    const bool tokens = detail::has_many_tokens(p);
    const auto shorten = [&](plan& q, int to) { (tokens ? q.workload.tokens : q.microbatches) = to; };
    shorten(shorter, filled);
    shorten(longer, 2 * filled);
    quick_judgement a = judge_quickly(problem, shorter), b = judge_quickly(problem, longer);
    // The time between tokens is a mean: what adds up with the tokens is their whole span.
    const auto spans = [&](evaluation& e, double times) {
      if (tokens) e.time_between_tokens = times * *e.time_between_tokens;
    };
    spans(a.evaluation, filled - 1);
    spans(b.evaluation, 2 * filled - 1);
    const int whole = tokens ? p.workload.tokens : p.microbatches;
    quick_judgement q{detail::extrapolate(a.evaluation, b.evaluation, static_cast<double>(whole - 2 * filled) / filled), a.steps + b.steps};
    spans(q.evaluation, 1.0 / (whole - 1));
    return q;
  }
  judgement j = judge(p, problem.model, problem.cluster, problem.cost, problem.models);
  return {std::move(j.evaluation), static_cast<long long>(j.graph.size())};
}

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/quick_judgement.ipp>
#endif
