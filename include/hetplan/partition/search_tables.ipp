// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/search_tables.hpp>

#include <algorithm>

#include <hetplan/partition/device_space.hpp>

namespace hetplan::partition {

HETPLAN_INLINE search_tables::search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c,
                                            const any_cost_model& cost, const any_memory_model& memory, const any_energy_model& energy,
                                            const workload& w, int max_share)
    : model(m), sequence(s), cluster(c), table(m, s, c, cost, memory, w, max_share), cuts(m, s), crossings(cuts) {
  for (const device& d : c.devices()) slopes.push_back(slopes_of(energy, d));
  classes = device_classes(c, [&](const device& a, const device& b) {
    if (a.usable_memory() != b.usable_memory() || a.energy_budget != b.energy_budget || a.max_busy != b.max_busy ||
        slopes[a.id.index()] != slopes[b.id.index()] || table.degrees(a.id) != table.degrees(b.id)) {
      return false;
    }
    if (table.optimizer_s(0, s.size(), a.id) != table.optimizer_s(0, s.size(), b.id)) return false;
    for (int g = 1; g <= table.degrees(a.id); ++g) {
      for (std::size_t i = 0; i < table.distinct_shares(); ++i) {
        const int share = table.samples_of(i);
        const auto alike = [&](const double* x, const double* y) { return std::equal(x, x + s.size() + 1, y); };
        if (!alike(table.totals(a.id, share, g), table.totals(b.id, share, g)) ||
            !alike(table.entries(a.id, share, g), table.entries(b.id, share, g))) {
          return false;
        }
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

HETPLAN_INLINE std::vector<layer_id> search_tables::layers_of(std::size_t first, std::size_t last) const {
  std::vector<layer_id> layers = sequence.layers_of(first, last);
  if (!table.times_boundaries()) std::sort(layers.begin(), layers.end());
  return layers;
}

HETPLAN_INLINE double search_tables::whole_model_s(device_id d) const {
  return table.time(0, sequence.size(), d, table.max_share()).total_s / table.max_share();
}

}  // namespace hetplan::partition
