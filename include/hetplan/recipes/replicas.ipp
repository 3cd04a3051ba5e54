// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/replicas.hpp>

#include <string>
#include <utility>

#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

/// @param shard  of the one stage; not `none` only in training.
HETPLAN_INLINE plan_result replicas(const planning_problem& problem, const any_objective& objective, int keep, const char* planner,
                                    sharding shard, const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const int n = static_cast<int>(problem.cluster.size());
  const bool possible = shard == sharding::none || problem.job.workload.mode == mode::training;
  for (const int size : sizes) {
    if (!possible || size < n) continue;
    plan p = blank_plan(problem, planner, size);
    stage s{.name = "s0", .layers = all_layers(problem.model), .shard = n > 1 ? shard : sharding::none};
    for (const device& d : problem.cluster.devices()) s.devices.push_back({d.id, size / n + (d.id.value < size % n ? 1 : 0)});
    p.stages = {std::move(s)};
    if (best.consider(std::move(p), static_cast<long long>(sizes.size()), observer) == control::stop) break;
  }
  plan_result found = std::move(best).result();
  if (n > 1 && (shard == sharding::zero2 || shard == sharding::fsdp)) without_proof(found);
  if (found.candidates > 0) return found;
  const std::string why = possible
                              ? "a batch of " + std::to_string(problem.job.batch) +
                                    " samples has no microbatch of the job's sizes with one for each of " + std::to_string(n) + " devices"
                              : std::string(planner) + " shares out gradients, which only training has";
  if (found.status.result == outcome::none_found) found.status.reason = why;
  return found;
}

}  // namespace detail

HETPLAN_INLINE plan_result ddp(const planning_problem& problem, const any_objective& objective, int keep,
                               const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "ddp", sharding::none, observer);
}
HETPLAN_INLINE plan_result zero2(const planning_problem& problem, const any_objective& objective, int keep,
                                 const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "zero2", sharding::zero2, observer);
}
HETPLAN_INLINE plan_result fsdp(const planning_problem& problem, const any_objective& objective, int keep,
                                const candidate_observer& observer) {
  return detail::replicas(problem, objective, keep, "fsdp", sharding::fsdp, observer);
}

}  // namespace hetplan::recipes
