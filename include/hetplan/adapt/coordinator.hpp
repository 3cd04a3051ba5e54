// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who coordinates, and what it takes to agree on another when the coordinator is gone.

#include <tuple>

#include <hetplan/adapt/run_migration.hpp>

namespace hetplan::adapt {

/// The device that coordinates: most compute (of all its accelerators), then most usable memory, then the smaller id, among
/// those that are there. The rule reads the cluster's numbers, not present speeds, so that everybody knows the same list.
///
/// Complexity  O(devices).
/// Throws      invalid_input if nobody is there.
/// Source      Dora, section 4.3 (failover of the coordinator); Asteroid, section 5.5: planning runs "on the most powerful
///             remaining device". The ties are ours.
[[nodiscard]] inline device_id elect_coordinator(const cluster& c, const conditions& now) {
  const auto rank = [&](device_id d) { return std::tuple(-c[d].total_compute().value(), -c[d].usable_memory().value(), d); };
  device_id best;
  for (const device& d : c.devices()) {
    if (now.present[d.id.index()] != 0 && (!best.valid() || rank(d.id) < rank(best))) best = d.id;
  }
  if (!best.valid()) throw invalid_input("elect_coordinator: no device of cluster \"" + c.name() + "\" is there; expected at least one");
  return best;
}

/// How long it takes the devices that are there to agree: every one knows the list, so one message from each to each
/// other says who is left. Runs on the network; pairs without a way receive nothing from each other.
///
/// Complexity  that of run_migration on N^2 messages.
[[nodiscard]] inline seconds election_time(const cluster& c, const conditions& now, bytes message = bytes(64)) {
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
