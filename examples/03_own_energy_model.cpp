// SPDX-License-Identifier: BSL-1.0
// A user-defined energy model: the cost of a joule depends on its source.
#include <cstdio>

#include <hetplan/hetplan.hpp>

using namespace hetplan;

// [energy_model]
/// Joules from a battery count three times, because of charging and aging.
struct battery_aware {
  joules energy(const device_usage& u, const device& d) const {
    const joules drawn = linear_power{}.energy(u, d);
    return d.kind == "phone" ? 3 * drawn : drawn;
  }
};
static_assert(check_energy_model<battery_aware>());
// [energy_model]

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 6; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 50_GFLOP, .weight = 50_MB, .activation = 4_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 500_kB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 4_GB, .compute = 5_TFLOP_per_s, .power = {8_W, 50_W}},
                      {.name = "phone", .kind = "phone", .memory = 2_GB, .compute = 1.6_TFLOP_per_s, .power = {1_W, 8_W}}},
                     shared_medium{600_Mbit_per_s, 2_ms});

  const job training{.batch = 8};
  const planning_problem plain{model, home, roofline{}, training};
  // [energy_model]
  const planning_problem aware{model, home, roofline{}, training, judge_models{plain_memory{}, battery_aware{}}};
  // [energy_model]
  std::printf("least energy, plainly:\n%s", describe(recipes::pipeline(plain, minimize_energy{}).plans.front(), model, home).c_str());
  std::printf("least energy, battery aware:\n%s", describe(recipes::pipeline(aware, minimize_energy{}).plans.front(), model, home).c_str());
}
