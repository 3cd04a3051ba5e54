// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/quick_judgement.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/tasks/contention_bound.hpp>
#include <hetplan/tasks/critical_path.hpp>

namespace hetplan {

namespace detail {

/// Microbatches, or tokens, after which the pipeline of a plan has filled.
[[nodiscard]] HETPLAN_INLINE int filled_after(const plan& p) { return 16 + 4 * static_cast<int>(p.stages.size()); }

[[nodiscard]] bool has_many_tokens(const plan& p);

}  // namespace detail

namespace detail {

[[nodiscard]] HETPLAN_INLINE bool has_many_microbatches(const plan& p) {
  return p.microbatches > std::max(most_microbatches_in_full, 4 * filled_after(p));
}

HETPLAN_INLINE bool has_many_tokens(const plan& p) {
  return p.workload.mode == mode::generation && p.workload.tokens > std::max(most_tokens_in_full, 4 * filled_after(p));
}

}  // namespace detail

HETPLAN_INLINE bool runs_long(const plan& p) {
  const bool shortens = p.pipelines.empty() && p.schedule.kind != schedule_kind::explicit_orders && p.schedule.transfers.empty() &&
                        std::all_of(p.stages.begin(), p.stages.end(), [&](const stage& s) { return p.size_of(s) == p.microbatch_size; });
  return shortens && (detail::has_many_microbatches(p) || detail::has_many_tokens(p));
}

namespace detail {

HETPLAN_INLINE evaluation extrapolate(const evaluation& a, const evaluation& b, double times) {
  const auto further = [&](auto x, auto y) { return std::max(decltype(y){}, y + times * (y - x)); };
  evaluation e = b;
  e.latency = further(a.latency, b.latency);
  if (e.time_between_tokens) e.time_between_tokens = further(*a.time_between_tokens, *b.time_between_tokens);
  for (std::size_t d = 0; d < e.devices.size(); ++d) {
    device_evaluation& x = e.devices[d];
    x.energy = further(a.devices[d].energy, x.energy);
    x.peak_memory = further(a.devices[d].peak_memory, x.peak_memory);
    x.busy = further(a.devices[d].busy, x.busy);
  }
  for (std::size_t r = 0; r < e.resource_bytes.size(); ++r) e.resource_bytes[r] = further(a.resource_bytes[r], e.resource_bytes[r]);
  e.schedule_bound = further(a.schedule_bound, b.schedule_bound);
  e.contention_bound = further(a.contention_bound, b.contention_bound);
  e.schedule_gap = gap_to(e.latency, e.schedule_bound);
  return e;
}

}  // namespace detail

HETPLAN_INLINE quick_judgement judge_quickly(const planning_problem& problem, const plan& p) {
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

}  // namespace hetplan
