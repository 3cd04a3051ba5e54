// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's model partitioner (phase 1): coarsen, decompose into serial chains, search both substates, let the simulator choose.

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/decompose/serial.hpp>
#include <hetplan/graph/light_boundaries.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/partition/least_overflow.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/simulate/polish.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

struct partitioner_options {
  bool across_chains = true;  ///< a stage may also hold pieces of neighbouring chains
  double merge_share = 0.05;  ///< Delta: blocks stay below this share of all parameters and of all FLOP
  int k = 20;                 ///< partial plans per cell, and plans per search that the simulator judges
  int max_stages = 16;
  double most_moves = partition::affordable_moves;  ///< device orders: all of them up to so many moves of the search, else a few
  std::size_t light_blocks = 200;                   ///< of a second row: the model's own numbering, cut where little crosses; 0: none
  polish_options polish = {};                       ///< of the best plans found
};

/// For every microbatch size, device order and warm-up rule: the K best plans under the dominant-step estimate, which
/// relaxes contention; the simulator, which knows it, ranks them all; the best ones are polished under it.
///
/// An objective that is not monotone in (response, energy) cannot steer the search: then latency does, and the
/// objective ranks what is found.
///
/// @return     infeasible: the limit that binds in the plan that comes nearest, on which device, by how much. Stopped: the budget
///             of the problem was spent.
/// Complexity  B sizes times that of partition::two_substate_dp, and K simulations each.
/// Source      Dora, section 4.1, Algorithm 1. Deviations: see two_substate_dp; blocks merge by parameters and FLOP;
///             lower warm-ups compete instead of coming last, and are lowered only as far as memory asks; stages may
///             cross chains, for Dora's two substates alone lose up to 3.4 x (docs/reproduction/dora.md); a second, finer row in
///             the model's own numbering; polishing.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora_partitioner(const Problem& problem, const Objective& objective, int keep, const partitioner_options& options,
                                           Observers&&... observers) {
  using namespace partition;
  check_keep(keep, "dora_partitioner");
  const layer_sequence chains = decompose::serial(problem.model, coarsen::merge_small(problem.model, {.share = options.merge_share}));
  auto sizes = problem.job.candidate_microbatch_sizes(problem.cluster.size());
  std::vector<layer_sequence> rows{options.across_chains ? chains.joined() : chains};
  if (options.across_chains && options.light_blocks > 0) rows.push_back(light_blocks(problem.model, options.light_blocks));
  ranking best(problem, objective, std::max(keep, options.k));
  const long long expected = static_cast<long long>(sizes.size() * rows.size()) * options.k;  // a guess for progress bars
  const auto search = [&](const search_tables& tables, const device_space& space, const plan& blank, warmup_rule warmup,
                          bool keep_budgets) {
    const search_options how{.plans = options.k,
                             .max_stages = options.max_stages,
                             .warmup = warmup,
                             .keep_budgets = keep_budgets,
                             .most_extensions = best.budget().extensions_left()};
    search_result found;
    if constexpr (monotone_objective<Objective>) found = two_substate_dp(tables, space, blank, objective, top_k{options.k}, how);
    else found = two_substate_dp(tables, space, blank, minimize_latency{}, top_k{options.k}, how);
    best.budget().spend_extensions(found.counts.extended);
    if (found.status.result == outcome::stopped) static_cast<void>(best.out_of_steps());
    return std::move(found.plans);
  };
  std::vector<plan> judged;  // searches under several warm-up rules and orders find some plans again
  const auto judge_new = [&](plan p) {
    drop_usual_warmup(p, problem.model);
    if (std::find(judged.begin(), judged.end(), p) != judged.end()) return flow::go;
    judged.push_back(p);
    return best.consider(std::move(p), expected, observers...);
  };
  const auto judge_all = [&](const std::vector<found_plan>& plans) {
    for (const found_plan& f : plans) {
      plan fitted = f.plan;  // warm-up lowered everywhere, if it is; also as little as memory asks
      if (!fitted.schedule.warmup.empty()) fit_warmup(fitted, problem.model, problem.cluster, problem.models.memory);
      if (judge_new(std::move(fitted)) == flow::stop || judge_new(f.plan) == flow::stop) return flow::stop;
    }
    return flow::go;
  };
  // Warm-up is a matter of 1F1B in training.
  const bool warms_up = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::one_f_one_b;

  for (const layer_sequence& row : rows) {
    const search_tables tables(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                               problem.job.workload, problem.job.largest_share());
    for (const int size : sizes) {
      if (best.any_fitted() && best.out_of_steps()) break;
      const plan blank = problem.blank("dora", size);
      for (const device_space& space : orders_to_search(tables, size, options.most_moves)) {
        for (const warmup_rule warmup : warmup_rules) {
          if (judge_all(search(tables, space, blank, warmup, true)) == flow::stop) return std::move(best).result(keep);
          if (!warms_up) break;
        }
      }
    }
    // The next row only for microbatch sizes that some of the best plans have.
    if (best.any_fitted()) {
      const auto promising = [kept = best.kept()](int b) {
        return std::any_of(kept.begin(), kept.end(), [&](const plan& p) { return p.microbatch_size == b; });
      };
      std::erase_if(sizes, [&](int b) { return !promising(b); });
      continue;
    }
    const plan blank = problem.blank("dora", sizes.front());  // judge what comes nearest, so that the answer says what is missing
    const device_space space = std::move(orders_to_search(tables, sizes.front(), options.most_moves).front());
    if (judge_all(search(tables, space, blank, warmup_rule::one, false)) == flow::stop) return std::move(best).result(keep);
    static_cast<void>(judge_new(least_overflow(tables, space, blank)));
  }
  for (plan& p : polish(problem, objective, best.kept(), rows, options.polish, best.budget())) {
    if (judge_new(std::move(p)) == flow::stop) break;
  }
  static_cast<void>(best.out_of_steps());
  return std::move(best).result(keep);
}
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora_partitioner(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  return dora_partitioner(problem, objective, keep, partitioner_options{}, observers...);
}

}  // namespace HETPLAN_NAMESPACE::recipes
