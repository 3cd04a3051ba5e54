// SPDX-License-Identifier: BSL-1.0
// Code that docs/tutorial.md adds to examples/01: compare, judge again, change the network, draw, keep as a file.

#include <hetplan/draw/gantt.hpp>
#include <hetplan/hetplan.hpp>
#include <hetplan/io/plan_json.hpp>

#include <filesystem>

#include <catch2/catch.hpp>

using namespace hetplan;

TEST_CASE("the tutorial's plan is compared, judged under other rules and drawn") {
  planning_graph_builder layers("chain");
  layers.add_layer({.name = "embed", .forward_flops = 1_GFLOP, .weight = 40_MB, .activation = 2_MB});
  for (const char* name : {"block1", "block2", "block3"}) {
    layers.add_layer({.name = name, .forward_flops = 30_GFLOP, .weight = 120_MB, .activation = 8_MB});
  }
  layers.add_layer({.name = "head", .forward_flops = 10_GFLOP, .weight = 40_MB, .activation = 4_MB});
  for (int l = 1; l < 5; ++l) layers.add_edge(layer_id(l - 1), layer_id(l), 1_MB);
  const planning_graph model = std::move(layers).build();
  const cluster home("home",
                     {{.name = "laptop", .memory = 2_GB, .compute = 9_TFLOP_per_s, .power = {8_W, 50_W}},
                      {.name = "tablet", .memory = 1_GB, .compute = 2_TFLOP_per_s, .power = {2_W, 12_W}},
                      {.name = "phone", .memory = 1_GB, .compute = 1.6_TFLOP_per_s, .power = {1_W, 8_W}}},
                     shared_medium{600_Mbit_per_s, 2_ms});
  const planning_problem problem{model, home, roofline{}, job{.batch = 16}};
  const plan_result result = recipes::dora(problem, minimize_latency{});

  std::vector<std::string> lines;
  const auto print = [&](std::string line) { lines.push_back(std::move(line)); };
  for (const plan_result& r : {recipes::on_device(problem, minimize_latency{}), recipes::data_parallel(problem, minimize_latency{}),
                               recipes::pipeline(problem, minimize_latency{}), result}) {
    if (r.plans.empty()) {
      print(r.status.reason);  // the broken limit, its device and the excess
      continue;
    }
    const auto& [p, e] = r.plans.front();
    print(p.planner + ": " + readable(e.latency) + ", " + readable(e.energy()));
  }
  REQUIRE(lines.size() == 4);
  CHECK(lines[2] == "pipeline: 532.1 ms, 28.11 J");
  CHECK(lines[3] == "dora: 485.3 ms, 26.85 J");

  auto [best, predicted] = result.plans.front();
  const judgement again = evaluate(best, model, home, roofline{});
  CHECK(again.evaluation == predicted);  // equal bit for bit

  best.sharing_policy = sharing::fair_share;
  const judgement all_at_once = evaluate(best, model, home, roofline{});
  CHECK(readable(all_at_once.evaluation.latency) == "572.8 ms");
  best.sharing_policy = sharing::exclusive;

  const std::string file = "docs_tutorial";
  const judgement j = evaluate(best, model, home, roofline{}, judge_models{}, no_lp{}, {.record = true});
  io::write_atomically(file + ".svg", draw::gantt_svg(best, home, j));
  io::write_atomically(file + ".json", io::write_plan({best, j.evaluation}, model, home));
  CHECK(std::filesystem::file_size(file + ".svg") > 1000);
  std::filesystem::remove(file + ".svg");
  std::filesystem::remove(file + ".json");
}
