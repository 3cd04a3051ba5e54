// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_partitioner.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/partition/least_overflow.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/plan/fit_warmup.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE std::vector<decompose::any_decomposition> usual_rows() { return {decompose::joined_chains{}, decompose::light_row{}}; }

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const partitioner_options& options, const candidate_observer& observer) {
  using namespace partition;
  check_keep(keep, "dora_partitioner");
  auto sizes = problem.job.candidate_microbatch_sizes(problem.cluster.size());
  polish_options polishing = options.polish;
  if (options.rows.empty()) polishing.boundaries = polish_boundaries::of_layers;
  std::vector<layer_sequence> rows;
  for (const decompose::any_decomposition& row_of : options.rows.empty() ? usual_rows() : options.rows)
    rows.push_back(row_of(problem.model));
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  ranking best(problem, objective, std::max(keep, options.k));
  const long long expected = static_cast<long long>(sizes.size() * rows.size()) * options.k;  // a guess for progress bars
  const auto search = [&](const search_tables& tables, const device_space& space, const plan& blank, warmup_rule warmup,
                          bool keep_budgets) {
    const search_options how{.plans = options.k,
                             .max_stages = options.max_stages,
                             .warmup = warmup,
                             .law = options.law,
                             .keep_budgets = keep_budgets,
                             .most_extensions = best.budget().extensions_left()};
    search_result found = two_substate_dp(tables, space, blank, steering, top_k{options.k}, how);
    best.budget().spend_extensions(found.counts.extended);
    if (found.status.result == outcome::stopped) static_cast<void>(best.out_of_steps());
    return std::move(found.plans);
  };
  std::vector<plan> judged;  // searches under several warm-up rules and orders find some plans again
  const auto judge_new = [&](plan p) {
    drop_usual_warmup(p, problem.model);
    if (std::find(judged.begin(), judged.end(), p) != judged.end()) return control::go;
    judged.push_back(p);
    return best.consider(std::move(p), expected, observer);
  };
  const auto judge_all = [&](const std::vector<found_plan>& plans) {
    for (const found_plan& f : plans) {
      plan fitted = f.plan;  // warm-up lowered everywhere, if it is; also as little as memory asks
      if (!fitted.schedule.warmup.empty()) fit_warmup(fitted, problem.model, problem.cluster, problem.models.memory);
      if (judge_new(std::move(fitted)) == control::stop || judge_new(f.plan) == control::stop) return control::stop;
    }
    return control::go;
  };
  // Warm-up is a matter of 1F1B in training.
  const bool warms_up = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::one_f_one_b;

  for (const layer_sequence& row : rows) {
    const search_tables tables(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy,
                               problem.job.workload, problem.job.largest_share());
    for (const int size : sizes) {
      if (best.any_fitted() && best.out_of_steps()) break;
      const plan blank = blank_plan(problem, "dora", size);
      for (const device_space& space : options.orders(tables, size)) {
        for (const warmup_rule warmup : warmup_rules) {
          if (judge_all(search(tables, space, blank, warmup, true)) == control::stop) return std::move(best).result(keep);
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
    const plan blank = blank_plan(problem, "dora", sizes.front());  // judge what comes nearest, so that the answer says what is missing
    const device_space space = std::move(options.orders(tables, sizes.front()).front());
    if (judge_all(search(tables, space, blank, warmup_rule::one, false)) == control::stop) return std::move(best).result(keep);
    static_cast<void>(judge_new(least_overflow(tables, space, blank)));
  }
  for (plan& p : polish(problem, objective, best.kept(), rows, polishing, best.budget())) {
    if (judge_new(std::move(p)) == control::stop) break;
  }
  static_cast<void>(best.out_of_steps());
  return std::move(best).result(keep);
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const candidate_observer& observer) {
  return dora_partitioner(problem, objective, keep, partitioner_options{}, observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
