// SPDX-License-Identifier: BSL-1.0
// A cost model of one's own: a plain struct with one const member. The planner and the judge only ask it.
#include <cstdio>

#include <hetplan/hetplan.hpp>

using namespace hetplan;

// [cost_model]
/// Phones throttle: what runs longer than 200 ms at a stretch goes on at half the speed.
struct throttling {
  roofline cool;

  seconds time(const work& w, const device& d) const {
    const seconds t = cool.time(w, d);
    if (d.kind != "phone" || t <= 200_ms) return t;
    return 200_ms + (t - 200_ms) / 0.5;
  }
};
static_assert(check_cost_model<throttling>());  // a wrong signature fails here, in one sentence
// [cost_model]

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 6; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 1_TFLOP, .weight = 50_MB, .activation = 4_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 500_kB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 4_GB, .compute = 5_TFLOP_per_s},
                      {.name = "phone0", .kind = "phone", .memory = 2_GB, .compute = 1.6_TFLOP_per_s},
                      {.name = "phone1", .kind = "phone", .memory = 2_GB, .compute = 1.6_TFLOP_per_s}},
                     shared_medium{600_Mbit_per_s, 2_ms});
  const job training{.batch = 8};

  const auto cool = recipes::pipeline(planning_problem{model, home, roofline{}, training}, minimize_latency{});
  const auto real = recipes::pipeline(planning_problem{model, home, throttling{}, training}, minimize_latency{});
  const auto surprise = evaluate(cool.plans.front().plan, model, home, throttling{}).evaluation;
  std::printf("planned as if phones stayed cool: promised %s, gets %s\n", readable(cool.plans.front().evaluation.latency).c_str(),
              readable(surprise.latency).c_str());
  std::printf("planned with the throttling model: %s\n", readable(real.plans.front().evaluation.latency).c_str());
}
