// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/switch_estimate.hpp>

#include <algorithm>
#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE std::optional<mix::switch_cost> estimate_switch(const planning_problem& problem, const holdings& held, const plan& next,
                                                               const conditions& now) {
  const migration m = delta_migration(held, next, problem.model, problem.cluster, now);
  if (!m.status.ok()) return std::nullopt;
  if (m.empty()) return mix::switch_cost{};
  const migration_run run = run_migration(m, problem.cluster, now, problem.models.energy);
  double extra = 0;
  for (const device& d : problem.cluster.devices()) {
    const joules idle = checked_energy(problem.models.energy, {.total = run.time}, d);
    if (run.energy[d.id.index()].value() > 0) extra += (run.energy[d.id.index()] - idle).value();
  }
  return mix::switch_cost{run.time.value(), std::max(0.0, extra)};
}

HETPLAN_INLINE std::pair<migration, migration> split_beside(const migration& all, const plan& running, const planning_graph& model,
                                                            const cluster& c, const any_memory_model& memory) {
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

}  // namespace hetplan::adapt
