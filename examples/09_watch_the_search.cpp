// SPDX-License-Identifier: BSL-1.0
// A search that shows its table: what each cell keeps, and the way of the best plan through it.
//
//   embed --> conv --> mix1 --> mix2 --> mix3 --> head        laptop  phone0  phone1
//                                                                \______|______/
//                                                                  300 Mbit/s
#include <cstdio>

#include <hetplan/hetplan.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/search_table_svg.hpp>

using namespace hetplan;
using namespace hetplan::partition;

int main(int argc, char** argv) {
  planning_graph_builder layers("toy");
  const auto add = [&](const char* name, flops forward, bytes weight, bytes activation) {
    return layers.add_layer({.name = name, .forward_flops = forward, .weight = weight, .activation = activation});
  };
  add("embed", 4_GFLOP, 6_MB, 8_MB);
  add("conv", 12_GFLOP, 2_MB, 12_MB);
  for (const char* name : {"mix1", "mix2", "mix3"}) add(name, 16_GFLOP, 24_MB, 6_MB);
  add("head", 8_GFLOP, 30_MB, 2_MB);
  const double cut_MB[] = {2, 1.5, 0.5, 1, 0.4};
  for (int l = 1; l < 6; ++l) layers.add_edge(layer_id(l - 1), layer_id(l), cut_MB[l - 1] * 1_MB);
  const planning_graph model = std::move(layers).build();

  const device phone{.name = "phone0", .kind = "phone", .memory = 400_MB, .compute = 1_TFLOP_per_s, .power = {1_W, 6_W}, .energy_budget = 12_J};
  std::vector<device> devices{{.name = "laptop", .memory = 2_GB, .compute = 2_TFLOP_per_s, .power = {8_W, 40_W}}, phone, phone};
  devices[2].name = "phone1";
  const cluster home("home", devices, shared_medium{300_Mbit_per_s, 1_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 16}};

  // [observer]
  struct seen_cell {
    std::size_t first_block, state;
    int stages;
    std::vector<partial_plan> kept;
  };
  std::vector<seen_cell> seen;
  const auto look = [&](const cell_filled& c) {
    seen.push_back({c.first_block, c.state, c.stages, {}});
    for (const partial_plan* p : c.kept) seen.back().kept.push_back(*p);
    return flow::go;
  };
  const plan blank = problem.blank("two_substate_dp", 2);
  const layer_sequence row = decompose::serial(model);
  const search_tables tables(model, row, home, problem.cost, plain_memory{}, linear_power{}, blank.workload, blank.microbatch_size);
  const device_space space = every_order(tables.classes, 2);
  const search_result found = two_substate_dp(tables, space, blank, minimize_latency{}, top_k{3}, {.plans = 3}, look);
  // [observer]
  for (const auto& f : found.plans) { auto p = f.plan; std::printf("%g\n%s", f.score, describe(p, model, home).c_str()); }
  for (const seen_cell& c : seen) {
    std::printf("b%zu s%zu q%d:", c.first_block, c.state, c.stages);
    for (const partial_plan& p : c.kept) std::printf("  D%.0f R%.0f X%.2f C%.0f r%.0f", 1e3*p.finished.reach_s, 1e3*p.finished.rest_s, p.energy_J, 1e3*p.limit_s, 1e3*p.rank);
    std::printf("\n");
  }
  std::printf("%lld %lld %lld\n", found.counts.cells, found.counts.kept, found.counts.extended);
  const auto all = two_substate_dp(tables, space, blank, minimize_latency{}, exhaustive{}, {.plans = 3, .prune = false});
  std::printf("%lld %lld %lld\n", all.counts.cells, all.counts.kept, all.counts.extended);
  const auto dom = two_substate_dp(tables, space, blank, minimize_latency{}, dominance{}, {.plans = 3, .prune = false});
  std::printf("%lld %lld %lld\n", dom.counts.cells, dom.counts.kept, dom.counts.extended);
}
