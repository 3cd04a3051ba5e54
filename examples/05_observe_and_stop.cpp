// SPDX-License-Identifier: BSL-1.0
// Observers see what happens and may stop it: a progress line for a planner, a deadline for a simulation.
#include <cstdio>

#include <hetplan/hetplan.hpp>
#include <hetplan/simulate/simulator.hpp>

using namespace hetplan;

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 12; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 50_GFLOP, .weight = 50_MB, .activation = 4_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 2_MB);
  }
  const planning_graph model = std::move(layers).build();
  const device phone{.name = "phone", .memory = 2_GB, .compute = 1.6_TFLOP_per_s};
  std::vector<device> phones(4, phone);
  for (std::size_t i = 0; i < phones.size(); ++i) phones[i].name = "phone" + std::to_string(i);
  const cluster shelf("shelf", phones, shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, shelf, roofline{}};

  // [observer]
  const auto progress = [](const candidate_judged& c) {
    std::printf("judged %lld, best so far %s\n", c.judged, c.best ? readable(c.best->evaluation.latency).c_str() : "none");
    return c.judged < 5 ? control::go : control::stop;
  };
  const plan_result result = recipes::pipeline(problem, minimize_latency{}, 10, progress);
  std::printf("%s: %s\n", std::string(to_string(result.status.result)).c_str(), result.status.reason.c_str());
  // [observer]

  // The same with the judge: stop at the first transfer that took longer than 40 ms.
  const plan& best = result.plans.front().plan;
  const auto slow = [&](const transfer_ended& e) {
    if (e.when.end_s - e.when.start_s < 0.04) return control::go;
    std::printf("microbatch %d needed %s from %s to %s\n", e.transfer.microbatch, readable(seconds(e.when.end_s - e.when.start_s)).c_str(),
                shelf[e.transfer.from].name.c_str(), shelf[e.transfer.to].name.c_str());
    return control::stop;
  };
  const trace t = simulate(tasks::expand(best, model, shelf, roofline{}), shelf.network(), fair_share{}, {}, slow);
  std::printf("%s at %s\n", std::string(to_string(t.status.result)).c_str(), readable(t.latency).c_str());
}
