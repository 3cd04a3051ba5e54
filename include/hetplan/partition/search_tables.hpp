// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search over a layer sequence reads, worked out once for all microbatch sizes and device orders.

#include <algorithm>
#include <vector>

#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/stage_table.hpp>
#include <hetplan/graph/sequence_cuts.hpp>
#include <hetplan/partition/device_space.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// The sequence's times, bytes and cuts, and the classes of devices that nothing in them tells apart.
///
/// Complexity  that of stage_table; classes: O(N * classes * (N + blocks * max_share)) for N devices.
/// Throws      invalid_model where a model answers what its concept forbids.
/// Source      the inputs of Dora's Algorithm 1; interchangeable devices as classes: our own.
struct search_tables {
  const planning_graph& model;
  const layer_sequence& sequence;
  const hetplan::cluster& cluster;
  stage_table table;
  sequence_cuts cuts;
  crossing_table crossings;
  std::vector<energy_slopes> slopes;            ///< by device
  std::vector<std::vector<device_id>> classes;  ///< largest memory first, then the faster, then the smaller id

  template <cost_model Cost, memory_model Memory, energy_model Energy>
  search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c, const Cost& cost, const Memory& memory,
                const Energy& energy, const workload& w, int max_share)
      : model(m), sequence(s), cluster(c), table(m, s, c, cost, memory, w, max_share), cuts(m, s), crossings(cuts) {
    for (const device& d : c.devices()) slopes.push_back(slopes_of(energy, d));
    classes = device_classes(c, [&](const device& a, const device& b) {
      if (a.usable_memory() != b.usable_memory() || a.energy_budget != b.energy_budget || a.max_busy != b.max_busy ||
          slopes[a.id.index()] != slopes[b.id.index()] || table.degrees(a.id) != table.degrees(b.id)) {
        return false;
      }
      if (table.optimizer_s(0, s.size(), a.id) != table.optimizer_s(0, s.size(), b.id)) return false;
      for (int g = 1; g <= table.degrees(a.id); ++g) {
        for (int share = 1; share <= max_share; ++share) {
          if (!std::equal(table.totals(a.id, share, g), table.totals(a.id, share, g) + s.size() + 1, table.totals(b.id, share, g)))
            return false;
        }
      }
      return true;
    });
    std::stable_sort(classes.begin(), classes.end(), [&](const auto& a, const auto& b) {
      const device &x = c[a.front()], &y = c[b.front()];
      if (x.usable_memory() != y.usable_memory()) return x.usable_memory() > y.usable_memory();
      return whole_model_s(x.id) < whole_model_s(y.id);
    });
  }

  /// Seconds of one sample of the whole model.
  [[nodiscard]] double whole_model_s(device_id d) const {
    return table.time(0, sequence.size(), d, table.max_share()).total_s / table.max_share();
  }
};

}  // namespace HETPLAN_NAMESPACE::partition
