// SPDX-License-Identifier: BSL-1.0
// An adaptation policy of one's own: two plans, one for a slow Wi-Fi, and the patience to wait until a change has lasted.
#include <cstdio>
#include <string>
#include <utility>

#include <hetplan/adapt/run.hpp>
#include <hetplan/hetplan.hpp>

using namespace hetplan;

// [adaptation_policy]
/// Leaves the network alone where it stays slow: a dip that passes is not worth moving weights for.
struct patient {
  plan usual, alone;        // over the Wi-Fi; on one device
  bytes_per_second enough;  // for the usual plan
  seconds patience;
  std::optional<seconds> since = {};  // when the running plan became the wrong one

  adapt::reaction react(const adapt::situation& s) {
    if (s.running == nullptr) return {.next = usual};
    const bool slow = s.noticed.capacity[0] < enough;
    const plan& better = slow ? alone : usual;
    if (same_placement(better, *s.running)) {
      since.reset();
      return {.cancel = s.coming != nullptr};  // it passed
    }
    if (!since) since = s.since;
    if (s.now < *since + patience) return {.ask_again = *since + patience};
    return {.next = better,
            .reached = adapt::rung::known_plan,
            .answers = since,
            .reason = slow ? "the Wi-Fi stays slow" : "the Wi-Fi is back"};
  }
};
static_assert(adapt::check_adaptation_policy<patient>());
// [adaptation_policy]

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 8; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 20_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 3_MB, 3_MB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home(
      "home", {{.name = "laptop", .memory = 4_GB, .compute = 9_TFLOP_per_s}, {.name = "tablet", .memory = 2_GB, .compute = 6_TFLOP_per_s}},
      shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 8}};
  const plan usual = recipes::dora(problem, minimize_latency{}).plans.front().plan;
  const plan alone = recipes::on_device(problem, minimize_latency{}).plans.front().plan;

  adapt::timeline day{900_s, {}};  // the Wi-Fi is slow for 6 s in every minute, and for the last five
  for (int minute = 0; minute < 10; ++minute) {
    day.events.push_back({minute * 60_s + 30_s, adapt::capacity_becomes{resource_id(0), 60_Mbit_per_s}});
    day.events.push_back({minute * 60_s + 36_s, adapt::capacity_becomes{resource_id(0), 600_Mbit_per_s}});
  }
  day.events.push_back({600_s, adapt::capacity_becomes{resource_id(0), 60_Mbit_per_s}});

  for (const seconds patience : {0_s, 15_s, 900_s}) {
    patient policy{usual, alone, 200_Mbit_per_s, patience};
    const adapt::history h = adapt::run(problem, day, policy);
    std::printf("patience %3.0f s: %4lld iterations, %2lld switches, %5.1f s without work\n", patience.value(), h.iterations, h.switches,
                h.stall_s);
  }
}
