// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/run_migration.hpp>

#include <utility>

#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE std::optional<tasks::task_graph_builder::handle> add_migration(tasks::task_graph_builder& b, const migration& m,
                                                                              const cluster& c,
                                                                              std::optional<tasks::task_graph_builder::handle> start,
                                                                              int fetch_priority) {
  if (!m.status.ok()) throw invalid_input("add_migration: the migration is infeasible: " + m.status.reason);
  auto before = start;
  for (const auto& round : m.rounds) {
    if (round.empty()) continue;
    const auto after = b.add_barrier();
    for (const fetch& f : round) {
      const route* way = c.network().find(f.from, f.to);
      if (way == nullptr) throw invalid_input("add_migration: no route from \"" + c[f.from].name + "\" to \"" + c[f.to].name + "\"");
      const auto moving = b.add(tasks::transfer{.from = f.from,
                                                .to = f.to,
                                                .priority = fetch_priority,
                                                .route = b.add_route(*way),
                                                .volume_bytes = f.volume.value(),
                                                .latency_s = way->latency.value()});
      if (before) b.depend(*before, moving);
      b.depend(moving, after);
    }
    before = after;
  }
  return before;
}

HETPLAN_INLINE migration_run run_migration(const migration& m, const cluster& c, const simulator_options& options,
                                           const any_energy_model& energy) {
  tasks::task_graph_builder b(c.size());
  static_cast<void>(add_migration(b, m, c));
  const tasks::task_graph g = std::move(b).build();
  const trace t = simulate(g, c.network(), policy_of_plan{sharing::fair_share}, options);
  const evaluation e = measure(g, t, c, energy);
  migration_run run{.ended = t.status.ok(), .time = t.latency, .moved = m.volume()};
  run.carried = e.resource_bytes;
  run.background_left = t.background_left;
  for (std::size_t d = 0; d < c.size(); ++d) {
    run.sent.emplace_back(t.sent_bytes[d]);
    run.received.emplace_back(t.received_bytes[d]);
    run.energy.push_back(e.devices[d].energy);
  }
  return run;
}

HETPLAN_INLINE migration_run run_migration(const migration& m, const cluster& c, const conditions& now, const any_energy_model& energy) {
  return run_migration(m, c, from_the_start(now, c), energy);
}

}  // namespace hetplan::adapt
