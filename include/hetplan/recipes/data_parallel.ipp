// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/data_parallel.hpp>

#include <string>
#include <utility>

#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/search/ranking.hpp>

namespace hetplan::recipes {

namespace detail {

/// @param shard  sharding of the one stage; other than `none` only in training.
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

HETPLAN_INLINE plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep,
                                         const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const workload& w = problem.job.workload;
  const auto& devices = problem.cluster.devices();
  for (const int size : sizes) {
    plan p = blank_plan(problem, "data-parallel", size);
    stage s{.name = "s0", .layers = all_layers(problem.model)};
    const int in_flight = microbatches_in_flight(p, 1);  // stage of depth 1
    const int largest = std::min(size, problem.job.largest_share());
    std::vector<int> caps;
    for (const device& d : devices) {
      const assignment one{d.id, 1};
      const double each = in_flight * stage_share_memory(problem.models.memory, problem.model, s, one, w, 0).forward;
      const double fixed = stage_static_bytes(problem.models.memory, problem.model, s, one, w, 0);
      const double cache = stage_static_bytes(problem.models.memory, problem.model, s, one, w, p.microbatches) - fixed;
      caps.push_back(count_that_fits(memory_limit_bytes(d) - fixed, each + cache, largest));
    }
    const auto time_s = [&](std::size_t d, int share) {
      double total = 0;
      for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
        if (what != phase::forward && w.mode != mode::training) break;
        total += stage_time_s(problem.cost, problem.model, s, {devices[d].id, share}, devices[d], what, w.context);
      }
      return total;
    };
    auto shares = partition::allocate(size, caps, time_s);
    if (!shares) shares = partition::allocate(size, std::vector<int>(devices.size(), size), time_s);
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if ((*shares)[d] > 0) s.devices.push_back({devices[d].id, (*shares)[d]});
    }
    p.stages = {std::move(s)};
    if (best.consider(std::move(p), static_cast<long long>(sizes.size()), observer) == control::stop) break;
  }
  return std::move(best).result();
}

}  // namespace hetplan::recipes
