// SPDX-License-Identifier: BSL-1.0
// When transfers run is a decision: by a priority of one's own, by search, and how good that provably is.
#include <cstdio>
#include <string>

#include <hetplan/hetplan.hpp>

using namespace hetplan;
using namespace hetplan::schedule;

// [transfer_priority]
// Gradients first: a backward transfer holds up everything that comes before its stage.
struct backward_first {
  double urgency(const tasks::transfer& t, const transfer_times& when) const {
    return when.tail_s + (t.kind == transfer_kind::backward ? 1e6 : 0);
  }
};
static_assert(check_transfer_priority<backward_first>());
// [transfer_priority]

void print(const char* what, const network_schedule& s) {
  std::printf("%-22s %8.3f s   at most %.2f %% above the best\n", what, s.latency.value(), 100 * s.gap);
}

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 20_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 3_MB, 3_MB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 2_GB, .compute = 9_TFLOP_per_s},
                      {.name = "tablet", .memory = 2_GB, .compute = 6_TFLOP_per_s},
                      {.name = "phone0", .memory = 2_GB, .compute = 3_TFLOP_per_s},
                      {.name = "phone1", .memory = 2_GB, .compute = 3_TFLOP_per_s}},
                     shared_medium{600_Mbit_per_s, 2_ms});
  // A plan of two stages, each on two devices: activations, gradients and two reductions share the air.
  plan p{.model = "blocks", .cluster = "home", .microbatch_size = 4, .microbatches = 8};
  p.stages = {{.name = "front",
               .layers = {layer_id(0), layer_id(1), layer_id(2), layer_id(3), layer_id(4)},
               .devices = {{device_id(0), 2}, {device_id(1), 2}}},
              {.name = "back", .layers = {layer_id(5), layer_id(6), layer_id(7)}, .devices = {{device_id(2), 2}, {device_id(3), 2}}}};

  const cep_graph cep(tasks::expand(p, model, home, roofline{}), home.network());
  print("left alone", uncontrolled(cep));
  print("critical path first", list_schedule(cep));
  print("longest tail first", list_schedule(cep, longest_tail_first{}));
  print("backward first", list_schedule(cep, backward_first{}));
  const network_schedule best = local_search(cep, {.steps = 200, .seed = 1});
  print("local search", best);
  const plan scheduled = apply(p, cep, best);  // carries the order as priorities
  std::printf("%s", describe({scheduled, judge(scheduled, model, home, roofline{}).evaluation}, model, home).c_str());
}
