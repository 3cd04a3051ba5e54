// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/on_device.hpp>

#include <hetplan/plan/plan.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result on_device(const planning_problem& problem, const any_objective& objective, int keep,
                                     const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto total = static_cast<long long>(sizes.size() * problem.cluster.size());
  for (const device& d : problem.cluster.devices()) {
    for (const int size : sizes) {
      plan p = blank_plan(problem, "on-device", size);
      p.stages = {{.name = "s0", .layers = all_layers(problem.model), .devices = {{d.id, size}}}};
      if (best.consider(std::move(p), total, observer) == control::stop) return std::move(best).result();
    }
  }
  return std::move(best).result();
}

}  // namespace hetplan::recipes
