// SPDX-License-Identifier: BSL-1.0
// What the order of transfers is worth where replicas exchange much: a table of docs/reproduction/dora.md; --json: one array.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <hetplan/hetplan.hpp>

#include "measure.hpp"
#include "report.hpp"

using namespace hetplan;

namespace {

/// A pipeline of 8 stages on two unequal devices each: where replicas exchange much, order pays.
template <class Network>
void add_replicas(bench::report& table, const char* name, const Network& net, int microbatches) {
  std::vector<device> devices;
  for (int d = 0; d < 16; ++d) devices.push_back({.name = "d" + std::to_string(d), .memory = 8_GB, .compute = flops_per_second(1e11)});
  const cluster c("sixteen", devices, net);
  planning_graph_builder layers("pipeline");
  plan p{.model = "pipeline", .cluster = "sixteen", .microbatch_size = 3, .microbatches = microbatches};
  for (int s = 0; s < 8; ++s) {
    layers.add_layer({.name = "l" + std::to_string(s), .forward_flops = flops(1e9 * (1 + s * 5 % 3)), .weight = 20_MB, .activation = 1_MB});
    if (s > 0) layers.add_edge(layer_id(s - 1), layer_id(s), 1_MB, 1_MB);
    p.stages.push_back(
        {.name = "s" + std::to_string(s), .layers = {layer_id(s)}, .devices = {{device_id(2 * s), 2}, {device_id(2 * s + 1), 1}}});
  }
  const schedule::cep_graph cep(tasks::expand(p, std::move(layers).build(), c, roofline{}), c.network());
  const schedule::network_schedule alone = schedule::uncontrolled(cep), best = schedule::searched_transfers{}(cep);
  char gain[32], gap[32];
  std::snprintf(gain, sizeof gain, "%.1f %%", 100 * (1 - best.latency / alone.latency));
  std::snprintf(gap, sizeof gap, "%.2f %%", std::max(0.0, 100 * best.gap));
  table.add({name, std::to_string(cep.tasks().transfers.size()), readable(alone.latency), readable(schedule::list_schedule(cep).latency),
             readable(schedule::list_schedule(cep, schedule::longest_tail_first{}).latency), readable(best.latency), gain, gap});
}

bench::report replicas(bool quick) {
  bench::report table(
      "Replicas: 8 stages, two devices each, 64 microbatches of 3",
      {"network", "transfers", "left alone", "critical path first", "longest tail first", "searched", "gain", "at most off"});
  const int m = quick ? 4 : 64;
  add_replicas(table, "one medium, 900 Mbit/s", shared_medium{900_Mbit_per_s, 2_ms}, m);
  add_replicas(table, "ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms}, m);
  add_replicas(table, "half-duplex ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms, duplex::half}, m);
  add_replicas(table, "star, 100 Mbit/s", star{100_Mbit_per_s, 1_ms}, m);
  add_replicas(table, "half-duplex star, 200 Mbit/s", star{200_Mbit_per_s, 1_ms, duplex::half}, m);
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::print({replicas(options.quick)}, options);
}
