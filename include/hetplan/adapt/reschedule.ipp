// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/reschedule.hpp>

#include <utility>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/present_problem.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE std::optional<plan> reschedule(const planning_problem& problem, const plan& p, const conditions& noticed,
                                              std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                              const schedule::refine_options& options) {
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) {
      if (!noticed.works(a.device)) return std::nullopt;
    }
  }
  const tasks::task_graph work = tasks::expand(staged(problem, p));
  for (const tasks::transfer& t : work.transfers) {
    if (!is_open(problem.cluster.network().find(t.from, t.to), noticed)) return std::nullopt;
  }
  const present_problem there(problem, offered(noticed, traffic, problem.cluster.network()), wanted);
  const plan inside[] = {there.inside(p)};
  plan_result r = schedule::refine(*there, objective_of_job(there->job), std::span<const plan>(inside), 1, options);
  if (r.plans.empty()) return std::nullopt;
  plan scheduled = there.outside(std::move(r.plans.front()));
  scheduled.predicted.reset();
  return scheduled;
}

}  // namespace HETPLAN_NAMESPACE::adapt
