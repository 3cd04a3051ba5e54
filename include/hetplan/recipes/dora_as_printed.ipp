// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_as_printed.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/decompose/decomposition.hpp>
#include <hetplan/partition/device_orders.hpp>
#include <hetplan/partition/least_overflow.hpp>
#include <hetplan/partition/two_substate_dp.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/schedule/refine.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int /*keep*/,
                                           const candidate_observer& observer) {
  using namespace partition;
  constexpr int k = 10;
  candidate_rounds rounds(2, objective, observer);
  const cluster view = uncontended(problem.cluster);
  const layer_sequence row = decompose::serial_chains{}(problem.model);
  const search_tables tables(problem.model, row, view, problem.cost, problem.models.memory, problem.models.energy, problem.job.workload,
                             problem.job.largest_share());
  const any_objective steering = objective.monotone() ? objective : minimize_latency{};
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto blank = [&](int size) { return blank_plan(problem, "dora-printed", size); };

  ranking choice(problem, objective, 1);
  std::vector<found_plan> found;
  for (const warmup_rule warmup : warmup_rules) {
    for (const int size : sizes) {
      if (!found.empty() && choice.out_of_steps()) break;
      search_result s = two_substate_dp(tables, by_memory(tables, size), blank(size), steering, top_k{k},
                                        {.plans = k, .warmup = warmup, .most_extensions = choice.budget().extensions_left()});
      choice.budget().spend_extensions(s.counts.extended);
      if (s.status.result == outcome::stopped) choice.cut();
      for (found_plan& f : s.plans) found.push_back(std::move(f));
    }
    if (!found.empty()) break;
  }
  std::stable_sort(found.begin(), found.end(), [](const found_plan& a, const found_plan& b) { return a.score < b.score; });
  if (found.size() > static_cast<std::size_t>(k)) found.resize(static_cast<std::size_t>(k));
  if (found.empty())
    found.push_back({least_overflow(tables, by_memory(tables, sizes.front()), blank(sizes.front())).value()});  // our own space
  const candidate_observer phase_1 = rounds.part();
  for (found_plan& f : found) {
    if (choice.consider(std::move(f.plan), static_cast<long long>(found.size()), phase_1) == control::stop || choice.last_fitted()) break;
  }
  plan_result chosen = std::move(choice).result();
  if (!chosen.status.ok()) return chosen;

  planning_problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - chosen.steps);
  plan_result scheduled = schedule::refine(rest, objective, chosen.plans, 1, {.predicted = true}, rounds.part());
  scheduled.candidates += chosen.candidates;
  scheduled.elapsed += chosen.elapsed;
  scheduled.steps += chosen.steps;
  return scheduled;
}

}  // namespace hetplan::recipes
