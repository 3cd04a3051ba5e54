// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where the order of transfers pays: a pipeline of replicated stages on several networks.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/plan/describe.hpp>

#include "reproduce/sections.hpp"

namespace bench {

namespace order {

using namespace hetplan;

/// A pipeline of 8 stages on two unequal devices each: where replicas exchange much, order pays.
template <class Network>
void add_replicas(std::vector<row>& rows, const char* name, const Network& net, int microbatches) {
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
  rows.push_back({name, std::to_string(cep.tasks().transfers.size()), readable(alone.latency),
                  readable(schedule::list_schedule(cep).latency),
                  readable(schedule::list_schedule(cep, schedule::longest_tail_first{}).latency), readable(best.latency),
                  number("%.1f %%", 100 * (1 - best.latency / alone.latency)), number("%.2f %%", std::max(0.0, 100 * best.gap))});
}

}  // namespace order

inline void add_order(const sections& page) {
  using namespace hetplan;
  std::vector<row> rows{
      {"network", "transfers", "left alone", "critical path first", "longest tail first", "searched", "gain", "at most off"}};
  const int m = page.quick() ? 4 : 64;
  order::add_replicas(rows, "one medium, 900 Mbit/s", shared_medium{900_Mbit_per_s, 2_ms}, m);
  order::add_replicas(rows, "ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms}, m);
  order::add_replicas(rows, "half-duplex ring, 200 Mbit/s", ring{200_Mbit_per_s, 1_ms, duplex::half}, m);
  order::add_replicas(rows, "star, 100 Mbit/s", star{100_Mbit_per_s, 1_ms}, m);
  order::add_replicas(rows, "half-duplex star, 200 Mbit/s", star{200_Mbit_per_s, 1_ms, duplex::half}, m);
  page.add_csv("dora.order.csv", rows);
}

}  // namespace bench
