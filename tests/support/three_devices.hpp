// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A chain of unequal layers and three unequal devices on one medium: a minimal problem on which recipes differ.

#include <string>
#include <utility>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::test {

inline planning_graph chain(int layers, double weight_mb = 10) {
  planning_graph_builder b("chain");
  for (int i = 0; i < layers; ++i) {
    b.add_layer(
        {.name = "l" + std::to_string(i), .forward_flops = flops(1e10 * (1 + i % 3)), .weight = weight_mb * 1_MB, .activation = 2_MB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_MB * (1 + i % 2));
  }
  return std::move(b).build();
}

inline cluster three(bytes memory = 4_GB, bytes_per_second capacity = 400_Mbit_per_s) {
  return cluster("three",
                 {{.name = "fast", .memory = memory, .compute = 4_TFLOP_per_s, .power = {5_W, 40_W}},
                  {.name = "middle", .memory = memory, .compute = 2_TFLOP_per_s, .power = {2_W, 15_W}},
                  {.name = "slow", .memory = memory, .compute = 1_TFLOP_per_s, .power = {1_W, 6_W}}},
                 shared_medium{capacity, 1_ms});
}

}  // namespace hetplan::test
