// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where every planner starts.

#include <string>

#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan {

/// A plan of the problem's job with nothing decided yet.
[[nodiscard]] inline plan blank_plan(const planning_problem& problem, std::string planner, int microbatch_size) {
  plan p{.model = problem.model.name(),
         .cluster = problem.cluster.name(),
         .planner = std::move(planner),
         .workload = problem.job.workload,
         .microbatch_size = microbatch_size,
         .microbatches = problem.job.batch / microbatch_size};
  if (p.workload.mode == mode::training) p.schedule.kind = problem.job.schedule;  // else there is one schedule, the default
  return p;
}

}  // namespace hetplan
