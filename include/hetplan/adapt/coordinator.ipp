// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/coordinator.hpp>

#include <tuple>

#include <hetplan/adapt/run_migration.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE device_id elect_coordinator(const cluster& c, const conditions& now) {
  const auto rank = [&](device_id d) { return std::tuple(-c[d].total_compute().value(), -c[d].usable_memory().value(), d); };
  device_id best;
  for (const device& d : c.devices()) {
    if (now.present[d.id.index()] != 0 && (!best.valid() || rank(d.id) < rank(best))) best = d.id;
  }
  if (!best.valid()) throw invalid_input("elect_coordinator: no device of cluster \"" + c.name() + "\" is there; expected at least one");
  return best;
}

HETPLAN_INLINE seconds election_time(const cluster& c, const conditions& now, bytes message) {
  migration talk;
  std::vector<fetch> round;
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      if (now.present[a.id.index()] == 0 || now.present[b.id.index()] == 0) continue;
      if (is_open(c.network().find(a.id, b.id), now)) round.push_back({a.id, b.id, message, false, {}});
    }
  }
  if (!round.empty()) talk.rounds.push_back(std::move(round));
  return run_migration(talk, c, now).time;
}

}  // namespace hetplan::adapt
