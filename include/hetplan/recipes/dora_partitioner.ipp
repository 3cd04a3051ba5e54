// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_partitioner.hpp>

#include <algorithm>
#include <memory>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE std::vector<decompose::any_decomposition> usual_rows() {
  return {decompose::joined_chains{}, decompose::serial_chains{}, decompose::light_row{}};
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const partitioner_options& options, const candidate_observer& observer) {
  using namespace partition;
  check_keep(keep, "dora_partitioner");
  auto sizes = problem.job.candidate_microbatch_sizes();
  polish_options polishing = options.polish;
  if (options.rows.empty()) polishing.boundaries = polish_boundaries::of_layers;
  std::vector<layer_sequence> rows;
  for (const decompose::any_decomposition& row_of : options.rows.empty() ? usual_rows() : options.rows) {
    layer_sequence row = cut_between_places(row_of(problem.model), problem.pinned);
    if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(std::move(row));
  }
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  ranking best(problem, objective, std::max(keep, options.k));
  const long long expected = static_cast<long long>(sizes.size() * rows.size()) * options.k;  // estimate for progress bars
  // Judged plans, as searches under several warm-up rules and orders find plans again, also known ones under another name.
  struct judged_plan {
    plan decision;
    bool found;  ///< true if found by a search, or polished from such a plan
  };
  std::vector<judged_plan> judged;
  const auto find_judged = [&](const plan& decision) {
    return std::find_if(judged.begin(), judged.end(), [&](const judged_plan& j) {
      return j.decision.microbatch_size == decision.microbatch_size && j.decision.stages == decision.stages && j.decision == decision;
    });
  };
  const auto with_own_name = [](plan p) {
    p.planner = "dora";
    return p;
  };
  for (ranked_plan known : options.known) {
    drop_usual_warmup(known.plan, problem.model);
    judged.push_back({with_own_name(known.plan), false});
    best.know(std::move(known));
  }
  const auto judge_new = [&](plan p) {
    drop_usual_warmup(p, problem.model);
    plan decision = with_own_name(p);
    if (const auto same = find_judged(decision); same != judged.end()) {
      same->found = same->found || p.planner == "dora";
      return control::go;
    }
    judged.push_back({std::move(decision), p.planner == "dora"});
    return best.consider(std::move(p), expected, observer);
  };
  const auto result = [&] {
    plan_result r = std::move(best).result(keep);
    for (auto& [p, e] : r.plans) {
      plan own = with_own_name(p);
      const auto same = find_judged(own);
      if (same != judged.end() && same->found) p.planner = "dora";
    }
    return r;
  };
  const auto judge_all = [&](const std::vector<found_plan>& plans) {
    for (const found_plan& f : plans) {
      plan fitted = f.plan;  // a lowered warm-up is lowered for all stages; try also only as far as memory requires
      if (!fitted.schedule.warmup.empty()) fit_warmup(fitted, problem.model, problem.cluster, problem.models.memory);
      if (judge_new(std::move(fitted)) == control::stop || judge_new(f.plan) == control::stop) return control::stop;
    }
    return control::go;
  };
  const auto judge_found = [&](const search_result& found) {
    best.budget().spend_extensions(found.counts.extended);
    if (found.status.result == outcome::stopped) best.cut();
    return judge_all(found.plans);
  };
  // Searches that exhaust the budget leave a part of it for polishing.
  const long long for_polish = polishing.plans > 0 ? std::min(problem.steps / 4, 1LL << 40) : 0;
  const auto allowance = [&]() -> std::optional<long long> {
    if (!best.any_fitted()) return best.budget().extensions_left();
    const long long left = best.budget().extensions_left() - for_polish * extensions_per_step;
    if (left > 0) return left;
    best.cut();
    return {};
  };
  const search_taker taker{allowance, judge_found};
  // Warm-up exists only under 1F1B in training.
  const bool warms_up = problem.job.workload.mode == mode::training && problem.job.schedule == schedule_kind::one_f_one_b;

  const memory_savers allowed = problem.job.memory_savers;
  std::vector<memory_savers> ways{{.shard_state = allowed.shard_state}};  // which costs no time
  if (allowed.recompute) ways.push_back(allowed);
  for (const layer_sequence& row : rows) {
    search_options how{.plans = options.k, .max_stages = options.max_stages, .law = options.law};
    std::optional<search_tables> tables;  // of the last way
    for (const memory_savers& use : ways) {
      tables.emplace(problem.model, row, problem.cluster, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                     problem.job.largest_share(), use, problem.pinned);
      std::vector<search_variant> variants;
      for (const int size : sizes) {
        for (device_space& space : options.orders(*tables, size)) {
          const auto shared = std::make_shared<const device_space>(std::move(space));
          for (const warmup_rule warmup : warmup_rules) {
            variants.push_back({blank_plan(problem, "dora", size), shared, warmup});
            if (!warms_up) break;
          }
        }
      }
      if (search_side_by_side(*tables, variants, steering, top_k{options.k}, how, options.threads, taker) == control::stop) return result();
    }
    // Later sequences only for the microbatch sizes of the best plans.
    if (best.any_fitted()) {
      const auto promising = [kept = best.kept()](int b) {
        return std::any_of(kept.begin(), kept.end(), [&](const ranked_plan& k) { return k.plan.microbatch_size == b; });
      };
      std::erase_if(sizes, [&](int b) { return !promising(b); });
      continue;
    }
    // Judge the nearest plan, so that the answer says what is missing.
    const auto space = std::make_shared<const device_space>(std::move(options.orders(*tables, sizes.front()).front()));
    const search_variant whatever_it_takes{blank_plan(problem, "dora", sizes.front()), space, warmup_rule::one};
    how.keep_budgets = false;
    if (search_side_by_side(*tables, {whatever_it_takes}, steering, top_k{options.k}, how, 1, taker) == control::stop) return result();
    if (auto nearest = least_overflow(*tables, *space, whatever_it_takes.blank)) static_cast<void>(judge_new(*std::move(nearest)));
  }
  const auto limited = [](const device& d) { return d.energy_budget || d.max_busy < 1; };
  const bool shares_matter = std::ranges::any_of(problem.cluster.devices(), limited);
  if (best.any_fitted() ? shares_matter : !prove_infeasible(problem)) {
    const std::vector<plan> starts = best.any_fitted() ? plans_of(best.kept()) : best.nearest();
    mend_options how{.plans = std::max(keep, 3)};
    // Less effort if plans exist, or if memory is the only limit, which the search models exactly.
    if (best.any_fitted() || !shares_matter) how.judged = 100, how.steps = 100'000;
    for (plan& p : mend_limits(problem, objective, "dora", starts, best.budget(), how)) {
      if (judge_new(std::move(p)) == control::stop) return result();
    }
  }
  for (plan& p : polish(problem, objective, plans_of(best.kept()), rows, polishing, best.budget())) {
    if (judge_new(std::move(p)) == control::stop) break;
  }
  static_cast<void>(best.out_of_steps());
  return result();
}

HETPLAN_INLINE plan_result dora_partitioner(const planning_problem& problem, const any_objective& objective, int keep,
                                            const candidate_observer& observer) {
  return dora_partitioner(problem, objective, keep, partitioner_options{}, observer);
}

}  // namespace hetplan::recipes
