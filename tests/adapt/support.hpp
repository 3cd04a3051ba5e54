// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Random plans of one model on one cluster, for switches between plans.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

#include "support/random_source.hpp"

namespace adapt_tests {

using namespace hetplan;

/// Returns a valid 1F1B plan: consecutive layers in stages on random groups of the given devices, with random shares.
inline plan random_chain_plan(test::random_source& random, const planning_graph& model, const cluster& c, std::vector<device_id> devices,
                              const workload& w, int microbatch_size, int microbatches) {
  plan p{.model = model.name(), .cluster = c.name(), .workload = w, .microbatch_size = microbatch_size, .microbatches = microbatches};
  random.shuffle(devices);
  const int most = static_cast<int>(std::min(model.size(), devices.size()));
  const int stages = random.integer(1, most);
  const std::vector<int> lengths = random.split(static_cast<int>(model.size()), stages);
  const std::vector<int> widths = random.split(random.integer(stages, static_cast<int>(devices.size())), stages);
  int layer = 0;
  std::size_t taken = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    stage st{.name = "s" + std::to_string(s)};
    for (int l = 0; l < lengths[s]; ++l) st.layers.emplace_back(layer++);
    const int width = std::min(widths[s], microbatch_size);
    const std::vector<int> shares = random.split(microbatch_size, width);
    for (int i = 0; i < width; ++i)
      st.devices.push_back({devices[taken + static_cast<std::size_t>(i)], shares[static_cast<std::size_t>(i)]});
    taken += static_cast<std::size_t>(widths[s]);
    p.stages.push_back(std::move(st));
  }
  return p;
}

inline std::vector<device_id> all_devices(const cluster& c) {
  std::vector<device_id> all;
  for (const device& d : c.devices()) all.push_back(d.id);
  return all;
}

}  // namespace adapt_tests
