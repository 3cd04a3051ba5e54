// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/search/choose_savers.hpp>
#include <hetplan/search/ranking.hpp>

#include "support/random_source.hpp"

namespace test_choose_savers {

using namespace hetplan;

namespace {

/// (total excess, score) of a plan as the search sees it.
std::pair<double, double> cost_of(const planning_problem& problem, plan p) {
  p.schedule.warmup.clear();
  fit_warmup(p, problem.model, problem.cluster, problem.models.memory);
  const evaluation e = judge_quickly(problem, p).evaluation;
  return {total_overflow(e, problem.cluster), score(minimize_latency{}, e)};
}

cluster of(int devices, double memory, double rate) {
  std::vector<device> all;
  for (int i = 0; i < devices; ++i) {
    device d;
    d.name = "d" + std::to_string(i);
    d.compute = flops_per_second((1 + i % 2) * 1e11);
    d.memory = bytes(memory);
    all.push_back(std::move(d));
  }
  return cluster("test", std::move(all), mesh{bytes_per_second(rate), seconds(1e-4)});
}

planning_graph chain(test::random_source& random, int layers) {
  planning_graph_builder b("chain");
  for (int i = 0; i < layers; ++i) {
    b.add_layer({.name = "l" + std::to_string(i),
                 .forward_flops = flops(random.integer(1, 4) * 1e9),
                 .weight = bytes(random.integer(1, 3) * 1e6),
                 .activation = bytes(random.integer(1, 3) * 1e6),
                 .block = random.chance(0.4) ? std::optional(i) : std::nullopt});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e5));
  }
  return std::move(b).build();
}

}  // namespace

TEST_CASE("choose_savers stops where no saver of one stage helps, and uses only what the job allows") {
  int recompute = 0, blocks = 0, sharded = 0;
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    test::random_source random(seed);
    INFO("seed " << seed);
    const planning_graph model = chain(random, 4);
    const cluster devices = of(4, random.between(1.2e7, 6e7), random.integer(1, 20) * 1e8);
    job j{.batch = 8};
    j.memory_savers = {.recompute = random.chance(0.7), .shard_state = random.chance(0.7)};
    const planning_problem problem(model, devices, roofline{}, j);
    plan start = blank_plan(problem, "test", 4);
    start.stages = {{.name = "s0", .layers = {layer_id(0), layer_id(1)}, .devices = {{device_id(0), 2}, {device_id(1), 2}}},
                    {.name = "s1", .layers = {layer_id(2), layer_id(3)}, .devices = {{device_id(2), 1}, {device_id(3), 3}}}};
    step_budget budget(1'000'000);
    const auto found = choose_savers(problem, minimize_latency{}, {start}, budget, 10'000);
    if (found.empty()) continue;
    const plan& best = found.front();
    const auto least = cost_of(problem, best);
    REQUIRE(least.first <= 0);
    REQUIRE(least <= cost_of(problem, start));
    for (std::size_t s = 0; s < best.stages.size(); ++s) {
      REQUIRE((j.memory_savers.recompute || !best.stages[s].recomputes()));
      REQUIRE((j.memory_savers.shard_state || best.stages[s].shard == sharding::none));
      recompute += best.stages[s].recompute == recomputation::stage;
      blocks += best.stages[s].recompute == recomputation::blocks;
      sharded += best.stages[s].shard != sharding::none;
      for (const recomputation again : {recomputation::none, recomputation::blocks, recomputation::stage}) {
        for (const sharding how : {sharding::none, sharding::state, sharding::zero2, sharding::fsdp}) {
          plan other = best;
          other.stages[s].recompute = again;
          other.stages[s].shard = how;
          if ((again != best.stages[s].recompute && (!j.memory_savers.recompute || how != best.stages[s].shard)) ||
              (how != best.stages[s].shard && !j.memory_savers.shard_state))
            continue;  // not allowed, or two moves
          REQUIRE(least <= cost_of(problem, other));
        }
      }
    }
  }
  CAPTURE(recompute, blocks, sharded);
  CHECK(recompute > 0);
  CHECK(blocks > 0);
  CHECK(sharded > 5);
}

TEST_CASE("choose_savers finds a plan that fits by sharded weights alone") {
  planning_graph_builder b("wide");
  for (int i = 0; i < 8; ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(1e9), .weight = bytes(1e6), .activation = bytes(1e4)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e5));
  }
  const planning_graph model = std::move(b).build();
  const cluster devices = of(4, 1.1e7, 1e9);  // all states: 32 MB
  job j{.batch = 8};
  plan start;
  const auto found_with = [&](bool shard) {
    job allowed = j;
    allowed.memory_savers.shard_state = shard;
    const planning_problem problem(model, devices, roofline{}, allowed);
    start = blank_plan(problem, "test", 4);
    stage all{.name = "s0", .layers = all_layers(model), .shard = sharding::fsdp};
    for (const device& d : devices.devices()) all.devices.push_back({d.id, 1});
    if (!shard) all.shard = sharding::none;
    start.stages = {all};
    step_budget budget(1'000'000);
    return choose_savers(problem, minimize_latency{}, {start}, budget);
  };
  CHECK(found_with(false).empty());
  const auto found = found_with(true);
  REQUIRE(found.size() == 1);
  CHECK(found.front().stages.front().shard == sharding::fsdp);
}

TEST_CASE("choose_savers leaves whole what two stages share") {
  planning_graph_builder b("tied");
  for (int i = 0; i < 2; ++i)
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(3e9), .weight = bytes(1e6), .weight_group = "tied"});
  b.add_edge(layer_id(0), layer_id(1), bytes(1000));
  const planning_graph model = std::move(b).build();
  const cluster devices = of(4, 1e9, 1e9);
  job j{.batch = 4};
  j.memory_savers.shard_state = true;
  const planning_problem problem(model, devices, roofline{}, j);
  plan start = blank_plan(problem, "test", 4);
  start.stages = {{.name = "s0", .layers = {layer_id(0)}, .devices = {{device_id(0), 2}, {device_id(1), 2}}},
                  {.name = "s1", .layers = {layer_id(1)}, .devices = {{device_id(2), 2}, {device_id(3), 2}}}};
  step_budget budget(1'000'000);
  const auto found = choose_savers(problem, minimize_latency{}, {start}, budget);
  REQUIRE(found.size() == 1);
  for (const stage& s : found.front().stages) CHECK((s.shard == sharding::none || s.shard == sharding::state));
}

}  // namespace test_choose_savers
