// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small random CEP graphs with contention: computing and transfers of similar length, few and unequal resources.

#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/schedule/cep_graph.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace hetplan::test {

struct random_cep {
  hetplan::cluster cluster;
  tasks::task_graph graph;
};

inline cluster random_network(random_source& random, int devices) {
  const bytes_per_second c(random.between(0.6, 1.6));
  const seconds l(random.chance(0.5) ? 0 : random.between(0, 0.2));
  switch (random.integer(0, 4)) {
    case 0: return {"random", workers(devices), shared_medium{c, l}};
    case 1: return {"random", workers(devices), ring{c, l}};
    case 2: return {"random", workers(devices), ring{c, l, duplex::half}};
    case 3: return {"random", workers(devices), star{c, l, duplex::half}};
    default: break;
  }
  route_table t{{{"air", c}, {"wire", c * 0.7}}, {}};  // the first device's traffic needs both
  t.rules.push_back({"*", "*", {l, {{resource_id(0), 1}}}});
  t.rules.push_back({"d0", "*", {l, {{resource_id(1), 1}, {resource_id(0), 0.5}}}});
  t.rules.push_back({"*", "d0", {l, {{resource_id(0), 1}, {resource_id(1), 0.5}}}});
  return {"random", workers(devices), t};
}

/// Returns tasks in a random order, each of which reads the results of one or two earlier ones, over the network between devices.
inline random_cep random_small_cep(std::uint64_t seed, int least_transfers, int most_transfers) {
  random_source random(seed * 0x2545f4914f6cdd1dU);  // spreads seeds: streams of neighbouring seeds overlap
  for (;;) {
    const int devices = random.integer(3, 5);
    const cluster c = random_network(random, devices);
    tasks::task_graph_builder b(static_cast<std::size_t>(devices));
    std::vector<tasks::task_graph_builder::handle> made;
    int transfers = 0;
    for (int n = random.integer(5, 9); n > 0; --n) {
      const device_id d(random.integer(0, devices - 1));
      const auto task = b.add(tasks::compute_task{.stage = stage_id(made.size()), .device = d, .duration_s = random.between(0.1, 1)});
      b.append_to_order(task);
      for (int k = made.empty() ? 0 : random.integer(0, 2); k > 0; --k) {
        const auto before = made[random.index(made.size())];
        const device_id from = b[before].device;
        if (from == d) {
          b.depend(before, task);
          continue;
        }
        const route& way = *c.network().find(from, d);
        const auto t = b.add(tasks::transfer{.from = from,
                                             .to = d,
                                             .from_stage = b[before].stage,
                                             .to_stage = stage_id(made.size()),
                                             .microbatch = transfers++,
                                             .route = b.add_route(way),
                                             .volume_bytes = random.between(0.1, 1.2),
                                             .latency_s = way.latency.value()});
        b.depend(before, t);
        b.depend(t, task);
      }
      made.push_back(task);
    }
    if (transfers < least_transfers || transfers > most_transfers) continue;
    return {c, std::move(b).build()};
  }
}

}  // namespace hetplan::test
