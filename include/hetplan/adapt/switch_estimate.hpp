// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a switch of plans would take now: for those who decide whether it is worth it.

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/plan_rates.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/adapt/run_migration.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Seconds during which nothing runs and joules beyond idling, if everything moves with the plan stopped and the network to
/// itself; nothing where weights are missing.
///
/// Complexity  that of delta_migration and run_migration.
/// Source      Dora, eq. 8: the switching overhead of a plan.
template <class Problem>
[[nodiscard]] std::optional<switch_cost> estimate_switch(const Problem& problem, const holdings& held, const plan& next,
                                                         const conditions& now) {
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

/// A migration in two: what may come while a plan runs, that is what nothing changes, to devices that have room for all of it
/// beside that plan; and what has to wait for the stop.
///
/// Source  Dora, section 4.3, asynchronous switching; the room is ours.
template <memory_model Memory>
[[nodiscard]] std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                           const cluster& c, const Memory& memory) {
  auto [beside, stopped] = split_immutable(all);
  if (beside.empty()) return {std::move(beside), std::move(stopped)};
  std::vector<double> room = free_bytes(running, model, c, memory);
  for (const auto& round : beside.rounds) {
    for (const fetch& f : round) room[f.to.index()] -= f.volume.value();
  }
  for (auto& round : beside.rounds) {
    const auto no_room = std::stable_partition(round.begin(), round.end(), [&](const fetch& f) { return room[f.to.index()] >= 0; });
    if (no_room != round.end()) stopped.rounds.emplace_back(no_room, round.end());
    round.erase(no_room, round.end());
  }
  std::erase_if(beside.rounds, [](const auto& round) { return round.empty(); });
  return {std::move(beside), std::move(stopped)};
}

}  // namespace HETPLAN_NAMESPACE::adapt
