// SPDX-License-Identifier: BSL-1.0
// Tasks and flows per second of the simulator, by size and contention.
//
// Targets: 1 000 000 compute tasks/s on 8 stages x 64 microbatches; 70 000 flows/s with 64 hosts on 64 links, 300 000 with 256 on 256.

#include <cstdint>

#include <hetplan/hetplan.hpp>
#include <hetplan/simulate/simulator.hpp>

#include "measure.hpp"

using namespace hetplan;

namespace {

/// A chain with one layer and one device per stage, over the given network.
struct chain {
  planning_graph model;
  cluster devices;
  plan p;
};

template <network_model Network>
chain make_chain(int stages, int microbatches, const Network& net, int layers_each = 1) {
  planning_graph_builder b("chain");
  std::vector<device> devices;
  plan p{.microbatch_size = 2, .microbatches = microbatches};
  for (int s = 0; s < stages; ++s) {
    stage mine{.name = "s" + std::to_string(s), .devices = {{device_id(s), 2}}};
    for (int n = s * layers_each; n < (s + 1) * layers_each; ++n) {
      const auto l =
          b.add_layer({.name = "l" + std::to_string(n), .forward_flops = flops(2e9 + 1e7 * n), .weight = 4_MB, .activation = 2_MB});
      if (n > 0) b.add_edge(layer_id(n - 1), l, bytes(4e5 + 1e3 * n));
      mine.layers.push_back(l);
    }
    devices.push_back({.name = "d" + std::to_string(s), .memory = 8_GB, .compute = 1_TFLOP_per_s});
    p.stages.push_back(std::move(mine));
  }
  return {std::move(b).build(), cluster("row", std::move(devices), net), std::move(p)};
}

/// Returns transfers without producers: a stream from each host, each over two of the shared links.
tasks::task_graph make_streams(int hosts, int links, int each) {
  tasks::task_graph_builder b(static_cast<std::size_t>(hosts));
  std::uint64_t state = 12345;  // the same flows with every standard library
  const auto next = [&](std::uint64_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<int>((state >> 33) % n);
  };
  for (int h = 0; h < hosts; ++h) {
    tasks::task_graph_builder::handle before{};
    for (int i = 0; i < each; ++i) {
      const int first = next(static_cast<std::uint64_t>(links));
      const int second = (first + 1 + next(static_cast<std::uint64_t>(links - 1))) % links;
      const auto r = b.add_route({seconds(), {{resource_id(first), 1}, {resource_id(second), 1}}});
      const auto flow = b.add(tasks::transfer{
          .from = device_id(h), .to = device_id((h + 1) % hosts), .microbatch = i, .route = r, .volume_bytes = 1e5 + 1e3 * next(1000)});
      if (i > 0) b.depend(before, flow);
      before = flow;
    }
  }
  return std::move(b).build();
}

}  // namespace

int main(int argc, char** argv) {
  const bench::options options(argc, argv);
  bench::table table(options);
  const auto chain_case = [&](const std::string& name, const chain& c, double target) {
    const auto g = tasks::expand(c.p, c.model, c.devices, roofline{});
    const double tasks = static_cast<double>(g.computes.size());
    table.run(name, tasks, "compute tasks/s", target, [&] { return simulate(g, c.devices.network()); });
    return g;
  };
  const chain eight = make_chain(8, 64, mesh{1_Gbit_per_s, 100_us});
  chain_case("chain 8 x 64, a wire each", eight, 1e6);
  table.run("  expansion of the same", 1024, "compute tasks/s", 0,
            [&] { return tasks::expand(eight.p, eight.model, eight.devices, roofline{}); });
  const chain deep = make_chain(8, 8, mesh{1_Gbit_per_s, 100_us}, 125);
  const planning_problem known{deep.model, deep.devices, roofline{}, job{.batch = 16}};
  table.run("a judgement: 1 000 layers in 8 stages, 8 microbatches", 1, "judgements/s", 0,
            [&] { return judge(deep.p, deep.model, deep.devices, known.cost, known.models); });
  chain_case("chain 8 x 64, one shared medium", make_chain(8, 64, shared_medium{1_Gbit_per_s, 100_us}), 0);
  chain_case("chain 8 x 1024, a wire each", make_chain(8, 1024, mesh{1_Gbit_per_s, 100_us}), 0);
  chain_case("chain 64 x 256, a wire each", make_chain(64, 256, mesh{1_Gbit_per_s, 100_us}), 0);

  struct streams {
    int hosts, links;
    double target;
  };
  for (const streams& s : {streams{16, 16, 0}, {64, 64, 7e4}, {256, 256, 3e5}, {1024, 1024, 0}, {256, 64, 0}}) {
    const auto g = make_streams(s.hosts, s.links, 40);
    std::vector<device> devices;
    route_table links;
    for (int h = 0; h < s.hosts; ++h) devices.push_back({.name = "h" + std::to_string(h), .memory = 1_GB});
    for (int l = 0; l < s.links; ++l) links.listed.push_back({"l" + std::to_string(l), 100_Mbit_per_s});
    const cluster c("hosts", std::move(devices), links);
    table.run(std::to_string(s.hosts) + " hosts sharing " + std::to_string(s.links) + " links", static_cast<double>(g.transfers.size()),
              "flows/s", s.target, [&] { return simulate(g, c.network()); });
  }
}
