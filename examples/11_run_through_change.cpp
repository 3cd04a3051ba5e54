// SPDX-License-Identifier: BSL-1.0
// A job that goes on while its environment changes: the Wi-Fi gets slow, a tablet leaves and comes back. It runs under two policies.
#include <cstdio>
#include <string>
#include <utility>

#include <hetplan/adapt/run.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/dora_adapter.hpp>

using namespace hetplan;

void print(const char* policy, const adapt::history& h) {
  const double each_J = h.energy_J / static_cast<double>(h.iterations);
  std::printf("%-22s %4lld iterations, %3.0f J each, %5.1f s without work\n", policy, h.iterations, each_J, h.stall_s);
  for (const adapt::adoption& a : h.adoptions) {
    std::printf("  at %5.1f s: %s, %.0f MB moved, in force at %.1f s\n", a.decided_s, a.reason.c_str(), 1e-6 * a.moved_bytes, a.done_s);
  }
}

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 20_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 3_MB, 3_MB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 800_MB, .compute = 9_TFLOP_per_s, .power = {8_W, 50_W}},
                      {.name = "tablet", .memory = 800_MB, .compute = 6_TFLOP_per_s, .power = {2_W, 12_W}},
                      {.name = "phone", .memory = 800_MB, .compute = 3_TFLOP_per_s, .power = {1_W, 8_W}}},
                     shared_medium{600_Mbit_per_s, 2_ms});

  const resource_id air(0);
  const device_id tablet = home.find("tablet");
  const adapt::timeline day{600_s,
                            {{60_s, adapt::capacity_becomes{air, 150_Mbit_per_s}},
                             {200_s, adapt::capacity_becomes{air, 600_Mbit_per_s}},
                             {300_s, adapt::device_leaves{tablet}},
                             {450_s, adapt::device_joins{tablet}}}};
  const planning_problem problem{model, home, roofline{}, job{.batch = 32}};
  const recipes::dora_planner planner;
  const adapt::run_options<> options{.storage = {.backups = adapt::backup_routine{.period = 10}}};  // what trains must not be lost

  adapt::static_plan unmoved(planner(problem).plans.front().plan);
  print("the same plan all day", adapt::run(problem, day, unmoved, options));
  recipes::dora_adapter adapter(problem, {.planner = planner});
  print("adapting", adapt::run(problem, day, adapter, options));
}
