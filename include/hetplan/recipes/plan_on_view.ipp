// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/plan_on_view.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <hetplan/estimate/estimate.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/search/mend_limits.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

HETPLAN_INLINE seconds estimated_latency(const planning_problem& problem, const plan& p, const planning_graph& model,
                                         const cluster& devices) {
  if (too_large_an_expansion(p, model)) return seconds(std::numeric_limits<double>::infinity());
  return estimate(p, model, devices, problem.cost, problem.models.memory, problem.models.energy).latency;
}

HETPLAN_INLINE layer_sequence affordable_row(const planning_graph& model, std::size_t devices, int largest_group, long long steps) {
  const auto n = static_cast<double>(devices);
  const double every_order = std::pow(3, n);
  const double moves = every_order <= partition::affordable_moves ? every_order : n * std::min<double>(n, largest_group);
  constexpr double pairs_per_step = 40, most_stages = 4e6;  // stages with cached costs, about 100 B each
  const double most = std::min(std::sqrt(2 * pairs_per_step * static_cast<double>(steps) / moves), most_stages / moves);
  if (static_cast<double>(model.size()) <= most) return sequence_of(model);
  return light_blocks(model, std::max<std::size_t>(60, static_cast<std::size_t>(most)));
}

}  // namespace detail

HETPLAN_INLINE plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model,
                                   const cluster& devices, const view_search& how, step_budget& budget) {
  using namespace partition;
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto tables_of = [&](const layer_sequence& s) {
    return search_tables(model, s, devices, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                         problem.job.largest_share(), {}, problem.pinned);
  };
  const layer_sequence row = cut_between_places(
      detail::affordable_row(model, devices.size(), std::min(sizes.back(), how.largest_group), problem.steps), problem.pinned);
  const search_tables tables = tables_of(row);
  const auto blank = [&](int size) {
    plan p = blank_plan(problem, planner, size);
    if (p.workload.mode == mode::training) p.schedule.kind = how.schedule;
    return p;
  };
  const auto spaces = [&](int size) {
    const int largest = std::min(size, how.largest_group);
    return how.memory_first ? std::vector{by_memory(tables, largest)} : orders_to_search(tables, largest);
  };
  std::optional<plan> best;
  seconds shortest;
  for (const warmup_rule warmup : how.warmups) {
    search_options options{.plans = 1, .warmup = warmup, .law = how.law, .keep_budgets = false};
    for (const int size : sizes) {
      for (const device_space& space : spaces(size)) {
        if (budget.spent()) break;
        options.most_extensions = budget.extensions_left();
        search_result found = two_substate_dp(tables, space, blank(size), minimize_latency{}, top_k{how.k}, options);
        budget.spend_extensions(found.counts.extended);
        if (found.plans.empty()) continue;
        plan& p = found.plans.front().plan;
        const seconds t = detail::estimated_latency(problem, p, model, devices);
        if (best && t >= shortest) continue;
        best = std::move(p);
        shortest = t;
      }
    }
    if (best) return *std::move(best);
  }
  // Finer cuts take long and give no further information; with pins the plan only shows one that it breaks.
  const layer_sequence coarse = light_blocks(model, problem.pinned.empty() ? 60 : 10);
  const search_tables unpinned(model, coarse, devices, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                               problem.job.largest_share());
  const device_space space = how.memory_first ? by_memory(unpinned, std::min(sizes.front(), how.largest_group))
                                              : orders_to_search(unpinned, std::min(sizes.front(), how.largest_group)).front();
  plan nearest = least_overflow(unpinned, space, blank(sizes.front())).value();  // never empty
  set_warmup(nearest, model, how.warmups.back());                                // one of the planner's own
  return nearest;
}

HETPLAN_INLINE plan choose_on_view(const planning_problem& problem, const char* planner, const planning_graph& model,
                                   const cluster& devices, const view_search& how) {
  step_budget budget(problem.steps);
  return choose_on_view(problem, planner, model, devices, how, budget);
}

HETPLAN_INLINE plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                        const step_budget& budget, const candidate_observer& observer) {
  fit_degrees(chosen, problem.model, problem.cluster);
  ranking only(problem, objective, 1, budget);
  if (budget.spent()) only.cut();
  static_cast<void>(only.consider(std::move(chosen), 1, observer));
  return std::move(only).result();
}

HETPLAN_INLINE plan_result judge_choice(const planning_problem& problem, const any_objective& objective, plan chosen,
                                        const candidate_observer& observer) {
  return judge_choice(problem, objective, std::move(chosen), step_budget(problem.steps), observer);
}

HETPLAN_INLINE plan_result plan_on_view(const planning_problem& problem, const any_objective& objective, const char* planner,
                                        const planning_graph& model, const cluster& devices, const view_search& how,
                                        const candidate_observer& observer) {
  step_budget budget(problem.steps);
  plan chosen = choose_on_view(problem, planner, model, devices, how, budget);
  return judge_choice(problem, objective, std::move(chosen), budget, observer);
}

}  // namespace hetplan::recipes
