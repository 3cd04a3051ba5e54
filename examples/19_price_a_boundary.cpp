// SPDX-License-Identifier: BSL-1.0
// Layers that follow each other on a device may cost more than each alone: a boundary has a price, and a cut saves it.
#include <cstdio>

#include <hetplan/hetplan.hpp>

using namespace hetplan;

// [cost_model]
/// Convolutions keep channels last, attention keeps them first: between the two a device moves every number to another place,
/// there and back, at a tenth of its bandwidth.
struct layouts : roofline {
  seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    if (before.kind == after.kind || k.phase == phase::backward_weight) return 0_s;
    return k.batch * 2 * before.largest_output / (0.1 * d.memory_bandwidth);
  }
};
static_assert(check_cost_model<layouts>() && times_boundary<layouts>);
// [cost_model]

int main() {
  planning_graph_builder layers("hybrid");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "l" + std::to_string(i), .kind = i < 5 ? "convolution" : "attention", .forward_flops = 20_GFLOP});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 4_MB);
  }
  const planning_graph model = std::move(layers).build();
  const device board{.name = "board0", .memory = 2_GB, .compute = 1_TFLOP_per_s, .memory_bandwidth = 1_GB_per_s};
  device twin = board;
  twin.name = "board1";
  const cluster desk("desk", {board, twin}, shared_medium{10_Gbit_per_s});
  const job training{.batch = 16, .microbatch_sizes = {2}};

  const auto print = [&](const char* name, const plan& p) {
    std::printf("%-22s cut before l%zu   takes %s\n", name, p.stages.at(0).layers.size(),
                readable(judge(p, model, desk, layouts{}).evaluation.latency).c_str());
  };
  print("layers priced alone:",
        recipes::pipeline(planning_problem{model, desk, roofline{}, training}, minimize_latency{}).plans.at(0).plan);
  print("and their boundaries:",
        recipes::pipeline(planning_problem{model, desk, layouts{}, training}, minimize_latency{}).plans.at(0).plan);
}
