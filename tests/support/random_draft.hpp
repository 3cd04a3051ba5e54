// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Random small problems for pipelines whose devices may hold several stages, with ties and edges on purpose.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/partition/pipeline_draft.hpp>
#include <hetplan/problem/planning_problem.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

struct draft_problem {
  planning_graph model;
  cluster devices;
  hetplan::job job;

  [[nodiscard]] planning_problem problem() const { return {model, devices, roofline{}, job}; }
};

struct draft_problem_sizes {
  int most_layers = 6;
  int most_devices = 4;
  bool branches = true;      ///< true: some tensors skip layers
  bool tight_memory = true;  ///< true: some devices hold a part of the model only
};

/// Returns a chain, sometimes with tensors that skip layers and with layers that share weights, on devices that are often twins.
inline draft_problem random_draft_problem(random_source& random, const draft_problem_sizes& sizes = {}) {
  hetplan::job j;
  j.workload.mode = random.chance(0.6) ? mode::training : random.chance(0.5) ? mode::inference : mode::generation;
  j.batch = random.integer(1, 8);
  if (j.workload.mode == mode::generation) j.workload.tokens = random.integer(2, 8);
  const int layers = random.integer(1, sizes.most_layers);
  planning_graph_builder b("random");
  double weights = 0;
  const bool starved = sizes.tight_memory && random.chance(0.3);  // of memory for activations
  const double kept = starved ? 1e7 : 1e5;
  const bool shares = layers > 1 && random.chance(0.4);
  for (int i = 0; i < layers; ++i) {
    const bool shared = shares && (i == 0 || i == layers - 1);
    const double weight = shared ? 3e6 : random.integer(0, 3) * 1e6;
    weights += weight;
    const double flop = random.integer(0, 4) * 1e9, activation = random.integer(0, 3) * kept;
    b.add_layer({.name = "l" + std::to_string(i),
                 .forward_flops = flops(flop),
                 .weight = bytes(weight),
                 .weight_group = shared ? "tied" : "",
                 .activation = bytes(activation)});
  }
  for (int i = 1; i < layers; ++i) {
    const double carried = random.integer(0, 4) * 1e5;
    const bool back = random.chance(0.9);
    if (back) b.add_edge(layer_id(i - 1), layer_id(i), bytes(carried));
    else b.add_edge(layer_id(i - 1), layer_id(i), bytes(carried), bytes(0));
  }
  if (sizes.branches && layers > 2 && random.chance(0.3)) {
    const int from = random.integer(0, layers - 3), to = random.integer(from + 2, layers - 1);
    const double carried = random.integer(1, 3) * 1e5;
    b.add_edge(layer_id(from), layer_id(to), bytes(carried));
  }
  std::vector<device> devices;
  const int count = random.chance(0.1) ? 1 : random.integer(2, sizes.most_devices);
  for (int i = 0; i < count; ++i) {
    device d;
    if (i > 0 && random.chance(0.4)) d = devices.back();
    else {
      d.compute = flops_per_second(random.integer(1, 4) * 1e11);
      d.half_batch = random.integer(0, 2);
      const bool tight = sizes.tight_memory && random.chance(0.5);
      const double part = starved ? random.between(0.2, 0.7) : tight ? random.between(0.3, 1.2) : 100;
      d.memory = bytes(starved ? 4 * weights + part * kept * layers * j.batch : part * (4 * weights + 1e6));
    }
    d.name = "d" + std::to_string(i);
    d.id = {};
    devices.push_back(std::move(d));
  }
  const double capacity = random.integer(1, 4) * 2e7, latency = random.integer(0, 2) * 1e-3;
  const int kind = random.integer(0, 2);
  const auto joined = [&](auto network) { return cluster("random", devices, network); };
  cluster c = kind == 0   ? joined(shared_medium{bytes_per_second(capacity), seconds(latency)})
              : kind == 1 ? joined(mesh{bytes_per_second(capacity), seconds(latency)})
                          : joined(ring{bytes_per_second(capacity), seconds(latency)});
  return {std::move(b).build(), std::move(c), std::move(j)};
}

/// Returns random sizes of at most the largest that add up to the batch; in generation equal ones.
inline std::vector<int> random_sizes(random_source& random, const hetplan::job& j) {
  const auto all = j.candidate_microbatch_sizes();
  if (j.workload.mode == mode::generation || random.chance(0.3)) {
    const int size = all[static_cast<std::size_t>(random.integer(0, static_cast<int>(all.size()) - 1))];
    return std::vector<int>(static_cast<std::size_t>(j.batch / size), size);
  }
  std::vector<int> sizes;
  for (int left = j.batch; left > 0; left -= sizes.back()) {
    const int most = std::min(left, all.back());
    sizes.push_back(random.integer(1, most));
  }
  return sizes;
}

}  // namespace hetplan::test
