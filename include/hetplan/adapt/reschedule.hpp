// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The second rung: the same plan, its transfers scheduled for the network of the moment. Nothing moves.

#include <optional>
#include <span>
#include <utility>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/present_problem.hpp>
#include <hetplan/schedule/refine.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// The running plan with transfer rules for present conditions; nothing where it cannot run, now or for want of a way, or
/// breaks a limit.
///
/// @param p        of the whole cluster; rules that it has compete.
/// Complexity      that of schedule::refine for one plan.   Throws, Determinism  as it.
/// Source          Dora, section 4.3: "first attempts to accommodate these changes by adjusting the network scheduling".
template <class Problem>
[[nodiscard]] std::optional<plan> reschedule(const Problem& problem, const plan& p, const conditions& noticed,
                                             std::span<const foreign_traffic> traffic, const qoe_target& wanted,
                                             const schedule::refine_options& options = {}) {
  for (const stage& s : p.stages) {
    for (const assignment& a : s.devices) {
      if (!noticed.works(a.device)) return std::nullopt;
    }
  }
  const tasks::task_graph work = tasks::expand(p, problem.model, problem.cluster, problem.cost, problem.models.memory);
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
