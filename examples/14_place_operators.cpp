// SPDX-License-Identifier: BSL-1.0
// Contiguous parts of a graph under a user-defined load: the share of its battery that a device spends on an image.
//
//             .-> depth1 -> depth2 -.            2 phones, 1 tablet with twice their battery
//   camera --<                       >-> fuse
//             '-> color1 -> color2 -'
#include <array>
#include <cstdio>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/place/contiguous_partition.hpp>

using namespace hetplan;

// [part_load]
// Kinds are phones (0) and tablets (1). A part grows and shrinks layer by layer; `load` is the device's battery share.
struct battery_share {
  const planning_graph& model;
  std::array<joules_per_byte, 2> radio{joules_per_byte(80e-9), joules_per_byte(60e-9)};
  std::array<double, 2> joules_per_flop{40e-12, 50e-12}, battery_J{45e3, 90e3};
  std::vector<char> inside = std::vector<char>(model.size(), 0);

  void add(std::size_t layer) { inside[layer] = 1; }
  void remove(std::size_t layer) { inside[layer] = 0; }
  double work(std::size_t layer, std::size_t kind) const {
    return model.layers()[layer].forward_flops.value() * joules_per_flop[kind] / battery_J[kind];
  }
  double load(std::size_t kind) const {
    double share = 0;
    for (std::size_t l = 0; l < inside.size(); ++l) share += inside[l] ? work(l, kind) : 0;
    for (const layer_edge& e : model.edges()) {
      if (inside[e.from.index()] != inside[e.to.index()]) share += (e.forward * radio[kind]).value() / battery_J[kind];
    }
    return share;
  }
};
static_assert(place::check_part_load<battery_share>());
// [part_load]

int main() {
  planning_graph_builder layers("two views");
  const std::array<std::pair<const char*, flops>, 6> all{
      {{"camera", 2_GFLOP}, {"depth1", 9_GFLOP}, {"depth2", 6_GFLOP}, {"color1", 5_GFLOP}, {"color2", 7_GFLOP}, {"fuse", 4_GFLOP}}};
  for (const auto& [name, work] : all) layers.add_layer({.name = name, .forward_flops = work});
  for (const auto& [from, to] : {std::pair{"camera", "depth1"}, {"depth1", "depth2"}, {"camera", "color1"}, {"color1", "color2"}}) {
    layers.add_edge(from, to, 900_kB);
  }
  layers.add_edge("depth2", "fuse", 200_kB);
  layers.add_edge("color2", "fuse", 200_kB);
  const planning_graph model = std::move(layers).build();

  const std::array devices{2, 1};
  const place::ideal_partition found = place::contiguous_partition(model, devices, battery_share{model});
  std::printf("%s, gap %.1f %%: the emptiest battery lasts for %.0f images\n", found.status.ok() ? "feasible" : found.status.reason.c_str(),
              100 * found.gap(), 1 / found.value);
  for (const place::ideal_part& part : found.parts) {
    std::printf("  %-6s %4.1f millionths of a battery:", part.kind == 0 ? "phone" : "tablet", 1e6 * part.load);
    for (const std::size_t l : part.nodes) std::printf(" %s", model.layers()[l].name.c_str());
    std::printf("\n");
  }
}
