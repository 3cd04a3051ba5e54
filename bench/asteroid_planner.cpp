// SPDX-License-Identifier: BSL-1.0
// Time of Asteroid's planner: recipes::choose_on_view for one microbatch size, with its cost tables and views, on six devices similar to
// those of the paper's planning table (one Jetson NX, two TX2s, three Nanos; a switch of 100 Mbit/s).
//
// Targets: 213 layers in 10 ms, 56 layers in 2 ms. Chains are random. On a Jetson NX, the paper's planner takes 480 s for EfficientNet-B1's
// 213 layers and 69 s for BERT-small's 56; its text does not say how many microbatch sizes it tries.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

#include "measure.hpp"

using namespace hetplan;

namespace {

cluster six_jetsons() {
  std::vector<device> devices;
  for (const char* kind : {"jetson-nx", "jetson-tx2", "jetson-tx2", "jetson-nano", "jetson-nano", "jetson-nano"}) {
    devices.push_back(zoo::device(kind, "d" + std::to_string(devices.size()), zoo::link::wire));
  }
  return {"six", std::move(devices), star{100_Mbit_per_s, 0.5_ms}};
}

/// Small generator, uniform in [0, 1), which gives the same instances with every standard library.
struct random_source {
  std::uint64_t state;
  double unit() {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 11) * 0x1p-53;
  }
};

/// Returns a chain of random layers, about those of an EfficientNet on small images.
planning_graph random_chain(int layers, std::uint64_t seed) {
  random_source random{seed};
  planning_graph_builder b("chain");
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i),
                 .forward_flops = flops(1e8 * (0.3 + random.unit())),
                 .weight = bytes(2e5 * (0.2 + random.unit())),
                 .activation = bytes(3e4 * (0.5 + random.unit()))});
    if (i > 0)
      b.add_edge(layer_id(static_cast<std::size_t>(i - 1)), layer_id(static_cast<std::size_t>(i)), bytes(4e3 * (0.5 + random.unit())));
  }
  return std::move(b).build();
}

void search(bench::table& table, const std::string& name, const std::vector<planning_graph>& models, int microbatch, double target_s) {
  const cluster devices = six_jetsons();
  job wanted{.batch = 16 * microbatch, .microbatch_sizes = {microbatch}};
  wanted.workload.optimizer_factor = 0;
  table.run_within(name + ", microbatch of " + std::to_string(microbatch), models.size(), target_s, [&](std::size_t i) {
    const planning_problem problem{models[i], devices, roofline{}, wanted};
    const planning_graph chain = chain_view(problem.model);
    const cluster view = uncontended(problem.cluster, duplex::half);
    static_cast<void>(recipes::choose_on_view(problem, "asteroid", chain, view, recipes::asteroid_search));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  const std::size_t runs = options.quick ? 1 : 21;
  for (const int layers : {56, 213}) {
    std::vector<planning_graph> chains;
    for (std::size_t i = 0; i < runs; ++i) chains.push_back(random_chain(layers, i + 1));
    for (const int microbatch : {8, 32, 128}) {
      search(table, std::to_string(layers) + " layers x 6 devices", chains, microbatch, layers == 56 ? 2e-3 : 10e-3);
    }
  }
  const planning_graph efficientnet = zoo::model("efficientnet-b1", {.input = zoo::image_shape{3, 64, 64}, .dtype = zoo::precision::fp32});
  for (const int microbatch : {8, 32, 128}) {
    search(table, "efficientnet-b1, 134 layers", std::vector<planning_graph>(runs, efficientnet), microbatch, 0);
  }
}
