// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a switch of plans would take now: for those who decide whether it is worth it.

#include <optional>

#include <hetplan/adapt/plan_rates.hpp>
#include <hetplan/adapt/run_migration.hpp>

namespace hetplan::adapt {

/// Seconds during which nothing runs and joules beyond idling, if everything moves with the plan stopped and the network to
/// itself; nothing where weights are missing.
///
/// Complexity  that of delta_migration and run_migration.
template <class Problem>
[[nodiscard]] std::optional<switch_cost> estimate_switch(const Problem& problem, const holdings& held, const plan& next, const conditions& now) {
  const migration m = delta_migration(held, next, problem.model, problem.cluster, now);
  if (!m.status.ok()) return std::nullopt;
  if (m.empty()) return switch_cost{};
  const migration_run run = run_migration(m, problem.cluster, now, problem.models.energy);
  double extra = 0;
  for (const device& d : problem.cluster.devices()) {
    const joules idle = problem.models.energy.energy({.total = run.time}, d);
    if (run.energy[d.id.index()].value() > 0) extra += (run.energy[d.id.index()] - idle).value();
  }
  return switch_cost{run.time.value(), std::max(0.0, extra)};
}

}  // namespace hetplan::adapt
