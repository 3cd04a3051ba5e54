// SPDX-License-Identifier: BSL-1.0
// All planners together: `hetplan compare` as a process, and planning times by size.
//
// Target: a compare of Qwen3-1.7B in smart home 2 in 0.8 s. Growth: chains of layers on devices of four unequal classes in a mesh, 16
// microbatches of 8; complete recipes, simulation of their answers included.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>

#include "measure.hpp"
#include "support/random_source.hpp"

using namespace hetplan;

namespace {

void run(const std::string& command) {
  if (std::system((command + " >/dev/null 2>&1").c_str()) != 0) {
    std::fprintf(stderr, "failed: %s\n", command.c_str());
    std::exit(1);
  }
}

planning_graph chain(int layers, int devices) {
  test::random_source random(static_cast<std::uint64_t>(layers + devices));
  planning_graph_builder b("chain");
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i),
                 .forward_flops = flops(1e9 * random.between(0.3, 1.3)),
                 .weight = bytes(4e8 * random.between(0.2, 1.2) * std::min(devices, 16) / layers),
                 .activation = bytes(1e8 * random.between(0.5, 1.5) / layers)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e5 * random.between(0.5, 1.5)));
  }
  return std::move(b).build();
}

cluster mesh_of(int count) {
  const double speed[] = {8, 4, 2, 1}, half_batch[] = {3, 2, 1, 0.5}, gigabytes[] = {4.8, 3.6, 3, 2.4};
  std::vector<device> devices;
  for (int i = 0; i < count; ++i) {
    const int c = i * 4 / count;
    devices.push_back({.name = "d" + std::to_string(i),
                       .memory = bytes(gigabytes[c] * 1e9),
                       .compute = flops_per_second(1e12 * speed[c]),
                       .half_batch = half_batch[c]});
  }
  return {"mesh", std::move(devices), mesh{1_Gbit_per_s, 1_ms}};
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  table.run_within("compare qwen3-1.7b smart-home-2", options.quick ? 1 : 5, 0.8, [](std::size_t) {
    run(HETPLAN_CLI " compare " HETPLAN_SOURCE_DIR "/bench/settings/qwen3-1.7b.json " HETPLAN_SOURCE_DIR
                    "/bench/settings/smart-home-2.json " HETPLAN_SOURCE_DIR "/bench/settings/training.json");
  });
  for (const int devices : {8, 16, 64}) {
    for (const int layers : {100, 300, 1000}) {
      if (devices * layers > (options.quick ? 800 : 16'000)) continue;
      const planning_graph model = chain(layers, devices);
      const cluster network = mesh_of(devices);
      const planning_problem problem{model, network, roofline{}, job{.batch = 128, .microbatch_sizes = {8}}};
      const std::string size = std::to_string(layers) + " layers x " + std::to_string(devices) + " devices: ";
      table.run_within(size + "asteroid", 1, 0, [&](std::size_t) { static_cast<void>(recipes::asteroid(problem, minimize_latency{})); });
      table.run_within(size + "dora", 1, 0, [&](std::size_t) { static_cast<void>(recipes::dora(problem, minimize_latency{}, 1)); });
      table.run_within(size + "metis", 1, 0, [&](std::size_t) { static_cast<void>(recipes::metis(problem, minimize_latency{})); });
    }
  }
}
