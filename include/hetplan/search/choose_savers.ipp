// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/search/choose_savers.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan {

namespace detail {

/// Returns the stages that differ from `s` by one move.
[[nodiscard]] HETPLAN_INLINE std::vector<stage> saver_moves(const stage& s, const memory_savers& allowed, const planning_graph& model) {
  std::vector<stage> all;
  if (!s.columns.empty()) return all;
  if (allowed.recompute) {
    const bool has_blocks = std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return model[l].block >= 0; });
    for (const recomputation other : {recomputation::none, recomputation::blocks, recomputation::stage}) {
      if (other == s.recompute || (other == recomputation::blocks && !has_blocks)) continue;
      all.push_back(s);
      all.back().recompute = other;
    }
  }
  const std::size_t n = s.devices.size();
  if (!allowed.shard_state || n < 2) return all;
  for (const sharding other : {sharding::none, sharding::state, sharding::zero2, sharding::fsdp}) {
    if (other == s.shard || (!s.cuts.empty() && other != sharding::none && other != sharding::state)) continue;
    all.push_back(s);
    all.back().shard = other;
    if (other == sharding::none || other == sharding::state) all.back().units.clear();
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (const int by : {std::max(1, s.devices[i].samples / 4), 1}) {
        if (i == j || s.devices[i].samples <= by || (by > 1 && s.devices[i].samples < 8)) continue;
        all.push_back(s);
        all.back().devices[i].samples -= by;
        all.back().devices[j].samples += by;
        if (by == 1) break;
      }
    }
  }
  return all;
}

}  // namespace detail

HETPLAN_INLINE std::vector<plan> choose_savers(const planning_problem& problem, const any_objective& objective,
                                               const std::vector<plan>& starts, step_budget& budget, int judged) {
  using cost = std::pair<double, double>;  // total excess, score
  constexpr double inf = std::numeric_limits<double>::infinity();
  int left = 0;
  const auto cost_of = [&](plan& p) {
    if (budget.spent() || too_large_an_expansion(p, problem.model)) return cost{inf, inf};
    for (stage& s : p.stages) s.offload.clear();
    const std::vector<double> held = static_bytes(p, problem.model, problem.models.memory, problem.cluster);
    for (const device& d : problem.cluster.devices()) {
      if (held[d.id.index()] > memory_limit_bytes(d) && d.tiers.empty()) return cost{inf, inf};  // no simulation tells more
    }
    --left;
    if (validate(p, problem)) return cost{inf, inf};  // stages that share a tensor may not hold parts of it
    try {
      fit_warmup(p, problem.model, problem.cluster, problem.models.memory);
      drop_usual_warmup(p, problem.model);
      const auto [e, steps] = judge_offloaded(problem, p);
      budget.spend(steps);
      return cost{total_overflow(e, problem.cluster), score(objective, e)};
    } catch (const missing_route&) {
      return cost{inf, inf};
    }
  };
  std::vector<plan> found;
  for (const plan& start : starts) {
    plan best = start;
    best.schedule.transfers.clear();
    left = judged;
    cost least = cost_of(best);
    for (bool helped = true; helped;) {
      helped = false;
      for (std::size_t s = 0; s < best.stages.size(); ++s) {
        for (stage& other : detail::saver_moves(best.stages[s], problem.job.memory_savers, problem.model)) {
          if (left <= 0) break;
          plan next = best;
          next.stages[s] = std::move(other);
          const cost c = cost_of(next);
          if (!(c < least)) continue;
          best = std::move(next);
          least = c;
          helped = true;
          break;
        }
      }
    }
    if (least.first <= 0) found.push_back(std::move(best));
  }
  return found;
}

}  // namespace hetplan
