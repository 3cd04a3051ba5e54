// SPDX-License-Identifier: BSL-1.0
// A chain of layers, three devices on one Wi-Fi, a pipeline plan, and what it costs.
//
//   embed --> block1 --> block2 --> block3 --> head        laptop  tablet  phone
//                                                             \______|______/
//                                                              600 Mbit/s
#include <cstdio>

#include <hetplan/hetplan.hpp>

using namespace hetplan;

int main() {
  planning_graph_builder layers("chain");
  layers.add_layer({.name = "embed", .forward_flops = 1_GFLOP, .weight = 40_MB, .activation = 2_MB});
  for (const char* name : {"block1", "block2", "block3"}) {
    layers.add_layer({.name = name, .forward_flops = 30_GFLOP, .weight = 120_MB, .activation = 8_MB});
  }
  layers.add_layer({.name = "head", .forward_flops = 10_GFLOP, .weight = 40_MB, .activation = 4_MB});
  for (int l = 1; l < 5; ++l) layers.add_edge(layer_id(l - 1), layer_id(l), 1_MB);
  const planning_graph model = std::move(layers).build();

  const cluster home("home",
                     {{.name = "laptop", .memory = 2_GB, .compute = 9_TFLOP_per_s, .power = {8_W, 50_W}},
                      {.name = "tablet", .memory = 1_GB, .compute = 2_TFLOP_per_s, .power = {2_W, 12_W}},
                      {.name = "phone", .memory = 1_GB, .compute = 1.6_TFLOP_per_s, .power = {1_W, 8_W}}},
                     shared_medium{600_Mbit_per_s, 2_ms});

  const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
  const plan_result result = recipes::dora(problem, minimize_latency{});
  if (result.plans.empty()) {
    std::printf("%s\n", result.status.reason.c_str());
    return 1;
  }
  std::printf("%s", describe(result.plans.front(), model, home).c_str());
}
