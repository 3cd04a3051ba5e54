// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/run_migration.hpp>

namespace HETPLAN_NAMESPACE::adapt {

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

}  // namespace HETPLAN_NAMESPACE::adapt
