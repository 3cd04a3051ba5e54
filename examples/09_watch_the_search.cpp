// SPDX-License-Identifier: BSL-1.0
// Watches a search fill its table: what each cell keeps, and how the best plan runs through it. An argument names an SVG to write.
#include <algorithm>
#include <cstdio>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/draw/search_table_svg.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/partition/two_substate_dp.hpp>

using namespace hetplan;
using namespace hetplan::partition;

int main(int argc, char** argv) {
  // embed -> conv -> mix1 -> mix2 -> mix3 -> head, on a laptop and two phones that share a Wi-Fi
  const char* const names[] = {"embed", "conv", "mix1", "mix2", "mix3", "head"};
  const double forward_GFLOP[] = {4, 12, 16, 16, 16, 8}, weight_MB[] = {6, 2, 24, 24, 24, 30}, to_next_MB[] = {2, 1.5, 0.5, 1, 0.4};
  planning_graph_builder layers("toy");
  for (int l = 0; l < 6; ++l) {
    layers.add_layer({.name = names[l], .forward_flops = forward_GFLOP[l] * 1_GFLOP, .weight = weight_MB[l] * 1_MB, .activation = 6_MB});
    if (l > 0) layers.add_edge(layer_id(l - 1), layer_id(l), to_next_MB[l - 1] * 1_MB);
  }
  const planning_graph model = std::move(layers).build();
  const device phone{
      .name = "phone0", .kind = "phone", .memory = 1_GB, .compute = 1_TFLOP_per_s, .power = {1_W, 6_W}, .energy_budget = 16_J};
  std::vector<device> devices{{.name = "laptop", .memory = 2_GB, .compute = 2_TFLOP_per_s, .power = {8_W, 40_W}}, phone, phone};
  devices[2].name = "phone1";
  const cluster home("home", devices, shared_medium{450_Mbit_per_s, 1_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
  const plan blank = blank_plan(problem, "two_substate_dp", 2);  // 8 microbatches of 2
  const layer_sequence row = decompose::serial(model);
  const search_tables tables(model, row, home, problem.cost, plain_memory{}, linear_power{}, blank.workload, blank.microbatch_size);
  const device_space space = every_order(tables.classes, blank.microbatch_size);

  std::vector<draw::table_cell> cells;
  std::vector<std::vector<partial_plan>> kept;  // by cell
  const auto watch = [&](const cell_filled& c) {
    cells.push_back({c.first_block, c.state, c.stages, c.kept.size(), c.kept.front()->rank});
    for (kept.emplace_back(); const partial_plan* p : c.kept) kept.back().push_back(*p);
    return control::go;
  };
  const search_result found = two_substate_dp(tables, space, blank, minimize_latency{}, top_k{3}, {.plans = 3}, watch);
  std::printf("partial plans kept : best rank in ms%5s%8s%8s%8s%8s\n", names[1], names[2], names[3], names[4], names[5]);
  for (std::size_t s = 1; s < space.states(); ++s) {
    const int laptops = 1 - space.left[s][0], phones = 2 - space.left[s][1];
    for (int q = 1; q <= laptops + phones && laptops + phones < 3; ++q) {
      std::printf("%d laptop, %d phones, %d stage%s     ", laptops, phones, q, q == 1 ? " " : "s");
      for (std::size_t b = 1; b < 6; ++b) {
        const auto it =
            std::find_if(cells.begin(), cells.end(), [&](const auto& c) { return c.first_block == b && c.state == s && c.stages == q; });
        if (it == cells.end()) std::printf("       .");
        else std::printf("  %zu:%4.0f", it->kept, 1e3 * it->best_rank);
      }
      std::printf("\n");
    }
  }
  // The best plan from its last stage on, and what the cells on its way keep.
  const plan& best = found.plans.front().plan;
  const pipeline_steps steps = make_steps(best, model, home, problem.cost);
  std::vector<int> left = space.left[0];
  for (std::size_t i = best.stages.size(), first = 6; i-- > 0;) {
    first -= best.stages[i].layers.size();
    for (const assignment& a : best.stages[i].devices) --left[a.device.index() == 0 ? 0 : 1];
    std::printf("%s from %s: e = %.0f ms", best.stages[i].name.c_str(), names[first], 1e3 * steps.stages[i].total_s);
    if (i + 1 < best.stages.size())
      std::printf(", link e = %.1f ms, own = %.1f ms", 1e3 * steps.links[i].total_s, 1e3 * steps.links[i].own_s);
    std::printf("\n");
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (cells[c].first_block != first || space.left[cells[c].state] != left) continue;
      for (const partial_plan& p : kept[c]) {
        std::printf("  %d stage(s): D %4.0f ms, R %4.0f ms, X %4.2f J, C %5.0f ms; rank %4.0f ms\n", p.stages, 1e3 * p.finished.reach_s,
                    1e3 * p.finished.rest_s, p.energy_J, 1e3 * p.limit_s, 1e3 * p.rank);
      }
    }
  }
  for (const found_plan& f : found.plans) {
    std::printf("estimate %.0f ms, simulated %.0f ms:", 1e3 * f.score,
                1e3 * evaluate(f.plan, model, home, problem.cost).evaluation.latency.value());
    for (const stage& s : f.plan.stages)
      std::printf(" %zu on %s%s", s.layers.size(), home[s.devices[0].device].name.c_str(), &s == &f.plan.stages.back() ? "\n" : ",");
  }
  const auto compare = [&](const char* how, const auto& policy, bool prune) {
    const search_result r = two_substate_dp(tables, space, blank, minimize_latency{}, policy, {.plans = 3, .prune = prune});
    std::printf("%-22s %3lld weighed, %2lld kept:", how, r.counts.extended, r.counts.kept);
    for (const found_plan& f : r.plans) std::printf(" %.0f%s", 1e3 * f.score, &f == &r.plans.back() ? " ms\n" : ",");
  };
  compare("everything", exhaustive{}, false);
  compare("dominance", dominance{}, false);
  compare("dominance and bounds", dominance{}, true);
  compare("the best 3 and bounds", top_k{3}, true);
  compare("the best 1 and bounds", top_k{1}, true);
  if (argc > 1) io::write_atomically(argv[1], draw::search_table_svg(tables, space, cells, found));
}
