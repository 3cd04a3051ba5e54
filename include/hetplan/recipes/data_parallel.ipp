// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/data_parallel.hpp>

#include <hetplan/partition/allocate.hpp>
#include <hetplan/plan/blank_plan.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_sums.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result data_parallel(const planning_problem& problem, const any_objective& objective, int keep,
                                         const candidate_observer& observer) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const workload& w = problem.job.workload;
  const auto& devices = problem.cluster.devices();
  for (const int size : sizes) {
    plan p = blank_plan(problem, "data-parallel", size);
    stage s{.name = "s0", .layers = all_layers(problem.model)};
    const int in_flight = microbatches_in_flight(p, 1);  // a stage of depth 1
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
