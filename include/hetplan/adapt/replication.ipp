// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/replication.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE migration backup_fetches(const replication& r, const planning_graph& model, const workload& w) {
  migration m;
  std::vector<fetch> round;
  for (const backup& b : r.backups) {
    for (const bool immutable : {true, false}) {
      fetch f{b.from, b.to, immutable ? b.once : b.each_time, immutable, {}};
      for (const layer_id l : b.layers) {
        if (is_immutable(model[l], w) == immutable) f.layers.push_back(l);
      }
      if (!f.layers.empty()) round.push_back(std::move(f));
    }
  }
  if (!round.empty()) m.rounds.push_back(std::move(round));
  return m;
}

HETPLAN_INLINE holdings with_backups(const holdings& held, const replication& r, const planning_graph& model, const workload& w,
                                     const conditions& now) {
  holdings all = held;
  for (const backup& b : r.backups) {
    for (const layer_id l : b.layers) {
      const auto holders = held.holders(l);
      const bool there = std::any_of(holders.begin(), holders.end(), [&](device_id d) { return now.present[d.index()] != 0; });
      if (!there || is_immutable(model[l], w)) all.add(b.to, l);
    }
  }
  return all;
}

}  // namespace HETPLAN_NAMESPACE::adapt
