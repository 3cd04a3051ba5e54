// SPDX-License-Identifier: BSL-1.0
// The cell policy decides what a cell of the search keeps: all that is not dominated, the best K, or a user-defined rule.
#include <cstdio>

#include <hetplan/hetplan.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_context.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

using namespace hetplan;
using namespace hetplan::partition;

// [cell_policy]
// Drops a partial plan if another is at most 1 % worse in every respect: few are kept, and n stages cost at most about n %.
struct nearly_dominated {
  std::size_t capacity() const { return 1000; }
  bool covers(const partial_plan& kept, const partial_plan& other) const { return kept.no_worse_than(other, 0.01); }
};
// [cell_policy]

template <cell_policy Policy>
void search_with(const char* name, const search_tables& tables, const device_space& space, const plan& blank, const Policy& policy) {
  const search_result found = two_substate_dp(tables, space, blank, keep_qoe{20_s, 30}, policy, {.plans = 1, .prune = false});
  std::printf("%-24s score %.4f J   %6lld partial plans in %lld cells\n", name, found.plans.front().score, found.counts.kept,
              found.counts.cells);
}

int main() {
  planning_graph_builder layers("blocks");
  for (int i = 0; i < 24; ++i) {
    layers.add_layer(
        {.name = "block" + std::to_string(i), .forward_flops = flops(1e10 * (2 + i * i % 7)), .weight = 12_MB, .activation = 9_MB});
    if (i > 0) layers.add_edge(layer_id(i - 1), layer_id(i), 100_kB * (1 + i % 4));
  }
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 2_GB, .compute = 9_TFLOP_per_s, .half_batch = 3, .power = {8_W, 50_W}},
                      {.name = "tablet", .memory = 1_GB, .compute = 2_TFLOP_per_s, .half_batch = 1, .power = {2_W, 12_W}},
                      {.name = "phone0", .memory = 1_GB, .compute = 1.6_TFLOP_per_s, .half_batch = 1, .power = {1_W, 8_W}},
                      {.name = "phone1", .memory = 1_GB, .compute = 1.6_TFLOP_per_s, .half_batch = 1, .power = {1_W, 8_W}}},
                     mesh{300_Mbit_per_s, 1_ms});

  const layer_sequence sequence = sequence_of(model);
  const plan blank{.model = "blocks", .cluster = "home", .planner = "mine", .microbatch_size = 4, .microbatches = 8};
  const search_tables tables(model, sequence, home, roofline{}, plain_memory{}, linear_power{}, blank.workload, blank.microbatch_size);
  const device_space space = every_order(tables.classes, blank.microbatch_size);
  search_with("dominance: exact", tables, space, blank, dominance{});
  search_with("the best 10 per cell", tables, space, blank, top_k{10});
  search_with("the best one per cell", tables, space, blank, top_k{1});
  search_with("1 % dominance", tables, space, blank, nearly_dominated{});
}
