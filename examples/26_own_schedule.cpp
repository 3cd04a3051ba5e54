// SPDX-License-Identifier: BSL-1.0
// Who runs what in which order: a rule of one's own for ready tasks, and orders of one's own, as a planner's choices.
#include <cstdio>
#include <utility>

#include <hetplan/hetplan.hpp>

using namespace hetplan;
using schedule::orders_by_device, schedule::pipeline_times;

// [pipeline_schedule]
// Interleaved 1F1B: each device takes its chunks in turn, as many microbatches of each as there are devices.
struct my_interleaved {
  orders_by_device orders(const pipeline_times& t) const {
    const int n = static_cast<int>(t.devices()), chunks = static_cast<int>(t.stages.size()) / n, all = t.microbatches * chunks;
    if (t.microbatches % n != 0) throw invalid_input("expected microbatches in whole groups of one for each device");
    orders_by_device orders(t.devices());
    for (int d = 0; d < n; ++d) {
      const auto step = [&](phase what, int k) {
        const int chunk = what == phase::forward ? k / n % chunks : chunks - 1 - k / n % chunks;
        return order_entry{what, stage_id(chunk * n + d), k / (n * chunks) * n + k % n};
      };
      const int ahead = std::min(all, 2 * (n - d - 1) + (chunks - 1) * n);  // forwards before the first backward
      for (int k = 0; k < all + ahead; ++k) {
        if (k < all) orders[d].push_back(step(phase::forward, k));
        if (k >= ahead) orders[d].push_back(step(phase::backward_input, k - ahead));
      }
    }
    return orders;
  }
};
static_assert(schedule::check_pipeline_schedule<my_interleaved>());
// [pipeline_schedule]

// [dispatch_policy]
// Whatever is longest; gradients of weights only where nothing else is to be done.
struct longest_first {
  std::optional<std::size_t> next(const dispatch_view& v) const {
    const auto rank = [](const ready_task& t) { return std::pair(t.what != phase::backward_weight, t.duration); };
    std::size_t best = 0;
    for (std::size_t i = 1; i < v.ready.size(); ++i) {
      if (rank(v.ready[i]) > rank(v.ready[best])) best = i;
    }
    return best;
  }
};
static_assert(check_dispatch_policy<longest_first>());
// [dispatch_policy]

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 16; ++i) {
    layers.add_layer({.name = "block" + std::to_string(i), .forward_flops = 60_GFLOP, .weight = 20_MB, .activation = 8_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 1_MB);
  }
  const planning_graph model = std::move(layers).build();
  const cluster rack("rack",
                     {{.name = "a", .memory = 8_GB, .compute = 9_TFLOP_per_s},
                      {.name = "b", .memory = 8_GB, .compute = 9_TFLOP_per_s},
                      {.name = "c", .memory = 8_GB, .compute = 9_TFLOP_per_s},
                      {.name = "d", .memory = 8_GB, .compute = 9_TFLOP_per_s}},
                     shared_medium{20_Gbit_per_s, 0.1_ms});
  const planning_problem problem(model, rack, roofline{}, job{.batch = 16, .microbatch_sizes = {1}});

  recipes::dora_options options;
  options.schedules.emplace_back("interleaved", my_interleaved{}, schedule::stage_shape::turns, 2);
  options.schedules.emplace_back("longest first", longest_first{});
  for (const auto& [p, e] : recipes::dora(problem, minimize_latency{}, 100, options).plans)
    std::printf("%-40s %zu stages %9.3f ms\n", p.planner.c_str(), p.stages.size(), 1e3 * e.latency.value());
}
