// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora, with the answers of all baselines among its candidates: never worse than any of them.

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/recipes/alpa.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/dapple.hpp>
#include <hetplan/recipes/data_parallel.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/edgeshard.hpp>
#include <hetplan/recipes/gpipe.hpp>
#include <hetplan/recipes/hetpipe.hpp>
#include <hetplan/recipes/metis.hpp>
#include <hetplan/recipes/on_device.hpp>
#include <hetplan/recipes/pipedream.hpp>
#include <hetplan/recipes/pipeline.hpp>

namespace hetplan::recipes {

/// Phase 1, every baseline's answer, and phase 2 over all of them.
///
/// @return     the `keep` best; stopped: of what was judged until then.
/// Complexity  the sum of its parts.
/// Source      ours: what a user wants who only cares for the best plan; Dora's own answer is recipes::dora.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora_with_baselines(const Problem& problem, const Objective& objective, int keep, const dora_options& options,
                                              Observers&&... observers) {
  check_keep(keep, "dora_with_baselines");
  plan_result all = dora_partitioner(problem, objective, std::max(keep, options.partitioner.k), options.partitioner, observers...);
  const auto add = [&](const auto& ask) {
    if (all.status.result == outcome::stopped) return;  // who said stop is not asked again
    plan_result other = ask();
    all.candidates += other.candidates;
    all.elapsed += other.elapsed;
    const bool nearer = other.binding && (!all.binding || other.binding->overflow() < all.binding->overflow());
    for (plan& p : other.plans) all.plans.push_back(std::move(p));
    if (other.status.result == outcome::stopped || (all.plans.empty() && nearer)) {
      all.status = std::move(other.status);
      all.binding = other.binding;
    } else if (!all.plans.empty()) {
      all.status = {};
      all.binding.reset();
    }
  };
  add([&] { return on_device(problem, objective, 1, observers...); });
  add([&] { return data_parallel(problem, objective, 1, observers...); });
  add([&] { return pipeline(problem, objective, 1, observers...); });
  add([&] { return gpipe(problem, objective, 1, observers...); });
  add([&] { return pipedream(problem, objective, 1, observers...); });
  add([&] { return dapple(problem, objective, 1, observers...); });
  add([&] { return hetpipe(problem, objective, 1, observers...); });
  add([&] { return edgeshard(problem, objective, 1, observers...); });
  add([&] { return alpa(problem, objective, 1, observers...); });
  add([&] { return metis(problem, objective, 1, observers...); });
  add([&] { return asteroid(problem, objective, 1, observers...); });
  if (!all.status.ok()) {
    std::stable_sort(all.plans.begin(), all.plans.end(), [&](const plan& a, const plan& b) {
      return std::pair(score(objective, *a.predicted), a.stages.size()) < std::pair(score(objective, *b.predicted), b.stages.size());
    });
    if (all.plans.size() > static_cast<std::size_t>(keep)) all.plans.resize(static_cast<std::size_t>(keep));
    return all;
  }
  plan_result best = schedule::refine(problem, objective, all.plans, keep, options.network, observers...);
  best.candidates += all.candidates;
  best.elapsed += all.elapsed;
  return best;
}
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result dora_with_baselines(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  return dora_with_baselines(problem, objective, keep, dora_options{}, observers...);
}

}  // namespace hetplan::recipes
