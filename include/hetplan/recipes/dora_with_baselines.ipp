// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_with_baselines.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

#include <hetplan/recipes/alpa.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/compare.hpp>
#include <hetplan/recipes/dapple.hpp>
#include <hetplan/recipes/data_parallel.hpp>
#include <hetplan/recipes/edgeshard.hpp>
#include <hetplan/recipes/gpipe.hpp>
#include <hetplan/recipes/hetpipe.hpp>
#include <hetplan/recipes/metis.hpp>
#include <hetplan/recipes/on_device.hpp>
#include <hetplan/recipes/pipedream.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/candidate_rounds.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE plan_result dora_with_baselines(const planning_problem& problem, const any_objective& objective, int keep,
                                               const dora_options& options, const candidate_observer& observer) {
  check_keep(keep, "dora_with_baselines");
  const named_planner::recipe baselines[] = {on_device, data_parallel, pipeline, gpipe, pipedream, dapple,
                                             hetpipe,   edgeshard,     alpa,     metis, asteroid};
  candidate_rounds rounds(static_cast<int>(std::size(baselines)) + 2, objective, observer);  // Dora's two phases
  planning_problem part = problem;
  part.steps = std::max(1LL, problem.steps / 2);
  plan_result all = dora_partitioner(part, objective, std::max(keep, options.partitioner.k), options.partitioner, rounds.part());
  /// A budget that is spent ends its part only; who said stop is not asked again.
  const auto told_to_stop = [](const plan_result& r) { return r.status.result == outcome::stopped && !r.out_of_steps; };
  const auto add = [&](named_planner::recipe baseline) {
    if (told_to_stop(all)) return;
    part.steps = std::max(1LL, (problem.steps - all.steps) / 2);  // the other half is for those behind, and for the transfers
    plan_result other = baseline(part, objective, 1, rounds.part());
    all.candidates += other.candidates;
    all.elapsed += other.elapsed;
    all.steps += other.steps;
    all.out_of_steps = all.out_of_steps || other.out_of_steps;
    const bool nearer = other.binding && (!all.binding || other.binding->overflow() < all.binding->overflow());
    for (plan& p : other.plans) all.plans.push_back(std::move(p));
    if (told_to_stop(other) || (all.plans.empty() && nearer)) {
      if (told_to_stop(other)) all.out_of_steps = false;
      all.status = std::move(other.status);
      all.binding = other.binding;
    } else if (!all.plans.empty()) {
      all.status = {};
      all.binding.reset();
    }
  };
  for (const named_planner::recipe each : baselines) add(each);
  if (all.plans.empty() && all.out_of_steps) all.status = {outcome::stopped, out_of_steps(problem.steps, all.candidates)};
  if (!all.status.ok()) {
    std::stable_sort(all.plans.begin(), all.plans.end(), [&](const plan& a, const plan& b) {
      return std::pair(score(objective, *a.predicted), a.stages.size()) < std::pair(score(objective, *b.predicted), b.stages.size());
    });
    if (all.plans.size() > static_cast<std::size_t>(keep)) all.plans.resize(static_cast<std::size_t>(keep));
    return all;
  }
  return detail::scheduled(problem, objective, std::move(all), keep, options.network, rounds.part());
}

HETPLAN_INLINE plan_result dora_with_baselines(const planning_problem& problem, const any_objective& objective, int keep,
                                               const candidate_observer& observer) {
  return dora_with_baselines(problem, objective, keep, dora_options{}, observer);
}

}  // namespace HETPLAN_NAMESPACE::recipes
