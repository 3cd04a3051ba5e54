// SPDX-License-Identifier: BSL-1.0
/// Planning with blocks that are run again: the view of the problem, and dora where nothing else fits.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/recipes/dora.hpp>
#include <hetplan/recipes/recomputed_blocks.hpp>
#include <hetplan/search/ranking.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace test_recomputed_blocks {

using namespace hetplan;
using recipes::recomputed_blocks;

namespace {

/// Returns a chain: a layer outside, blocks of two layers, a layer outside. A sample's block keeps 20 MB, a tensor has 1 MB.
planning_graph blocks_of_two(int blocks) {
  planning_graph_builder b("blocks", 4);
  const auto add = [&](std::string name, double activation_MB, std::optional<int> block) {
    const layer_id l = b.add_layer({.name = std::move(name),
                                    .forward_flops = 1_GFLOP,
                                    .weight = 4_MB,
                                    .activation = activation_MB * 1_MB,
                                    .workspace = 1_MB,
                                    .block = block});
    if (l.value > 0) b.add_edge(layer_id(l.index() - 1), l, 1_MB);
  };
  add("in", 1, {});
  for (int i = 0; i < blocks; ++i) {
    add("b" + std::to_string(i) + ".up", 15, i);
    add("b" + std::to_string(i) + ".down", 5, i);
  }
  add("out", 2, {});
  return std::move(b).build();
}

cluster devices_with(double memory_MB, int count = 1) {
  std::vector<device> all;
  for (int d = 0; d < count; ++d) {
    all.push_back(
        {.name = "d" + std::to_string(d), .memory = memory_MB * 1_MB, .compute = 1_TFLOP_per_s, .memory_bandwidth = 1e12 * 1_B / 1_s});
  }
  return cluster("devices", std::move(all), shared_medium{1_GB_per_s});
}

plan one_stage(const planning_problem& problem, recomputation again) {
  plan p = blank_plan(problem, "test", problem.job.batch);
  p.stages = {{.name = "s0", .layers = all_layers(problem.model), .devices = {{device_id(0), problem.job.batch}}, .recompute = again}};
  return p;
}

}  // namespace

TEST_CASE("what a plan takes on the view is what it takes with its blocks run again") {
  const planning_graph model = blocks_of_two(5);
  const cluster one = devices_with(1e4);
  const planning_problem problem(model, one, roofline{}, job{.batch = 8});
  const recomputed_blocks view(problem);
  const plan of_view = one_stage(view.problem(), recomputation::none);
  const plan restored = view.restored(of_view);
  CHECK(restored == one_stage(problem, recomputation::blocks));
  const evaluation on_view = judge_quickly(view.problem(), of_view).evaluation, real = judge_quickly(problem, restored).evaluation;
  CHECK(on_view.latency.value() == Approx(real.latency.value()));
  CHECK(on_view.peak_memory().value() == Approx(real.peak_memory().value()));
  CHECK(recomputed_blocks::exist_in(model));
}

TEST_CASE("where activations fit block by block alone, dora runs blocks again") {
  const planning_graph model = blocks_of_two(6);
  // Weights and what belongs to them take 224 MB. A sample's activations take 123 MB, by blocks 3 + 6 * 1 and 20 at a time.
  for (const int devices : {1, 2}) {
    const cluster small = devices_with(devices == 1 ? 224 + 9 + 20 + 1 : 150, devices);
    job j{.batch = 1};
    const auto found = [&] { return recipes::dora(planning_problem(model, small, roofline{}, j), minimize_latency{}, 1); };
    CHECK(found().plans.empty());
    j.memory_savers.recompute = true;
    const plan_result r = found();
    REQUIRE_FALSE(r.plans.empty());
    CHECK(r.status.ok());
    const plan& best = r.plans.front().plan;
    CHECK(std::ranges::any_of(best.stages, [](const stage& s) { return s.recompute == recomputation::blocks; }));
    CHECK(within_memory(r.plans.front().evaluation, small));
  }
}

}  // namespace test_recomputed_blocks
