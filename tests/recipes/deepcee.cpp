// SPDX-License-Identifier: BSL-1.0
// DeepCEE, and what frameworks do with equal devices.

#include <hetplan/recipes/deepcee.hpp>

#include <catch2/catch.hpp>

#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"

namespace test_deepcee {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Layers that learn: 4 s forward, as much twice backward, 1 MB of weights, `bytes_out` between them.
planning_graph learner(int layers, double bytes_out) {
  std::vector<layer_spec> specs;
  std::vector<tensor> edges;
  for (int l = 0; l < layers; ++l) {
    specs.push_back(work_of("l" + std::to_string(l), 4, 4, 4));
    specs.back().weight = bytes(1e6);
    specs.back().activation = bytes(1e6);
    specs.back().traffic = bytes{};
    if (l > 0) edges.push_back({l - 1, l, bytes_out, bytes_out});
  }
  return model_of(specs, edges);
}

/// Two regions of two devices: 1 GB/s inside, `between` from one to the other.
cluster two_regions(double between, double memory = 1e9) {
  auto all = workers(4);
  for (device& d : all) d.memory = bytes(memory);
  all[2].compute = all[3].compute = flops_per_second(2);
  route_table table;
  table.listed = {{"a", bytes_per_second(1e9)}, {"b", bytes_per_second(1e9)}, {"wan", bytes_per_second(between)}};
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 4; ++k) {
      if (i == k) continue;
      const std::size_t r = i / 2 != k / 2 ? 2 : i < 2 ? 0 : 1;
      table.rules.push_back({"d" + std::to_string(i), "d" + std::to_string(k), route{seconds(1e-4), {{resource_id(r)}}}});
    }
  }
  return {"two regions", all, table};
}

job training(int batch) {
  job j{.batch = batch};
  j.microbatch_sizes = {1, 2};
  return j;
}

}  // namespace

TEST_CASE("deepcee uses a second region where the network allows it, and leaves it where it does not") {
  const planning_graph m = learner(8, 1e6);
  const auto devices_of = [&](double between) {
    const cluster c = two_regions(between);
    const planning_problem problem(m, c, roofline{}, training(8));
    const plan_result r = recipes::deepcee(problem, minimize_latency{}, 1);
    REQUIRE(r.status.ok());
    const auto& [best, e] = r.plans.front();
    CHECK(best.schedule.kind == schedule_kind::explicit_orders);
    CHECK(judge(best, m, c, roofline{}).evaluation.latency.value() == near(e.latency.value()));
    bool first = false, second = false;
    for (const stage& s : best.stages) {
      for (const assignment& a : s.devices) (a.device.value < 2 ? first : second) = true;
    }
    return std::pair(first, second);
  };
  CHECK(devices_of(1e9) == std::pair(true, true));
  CHECK(devices_of(1) == std::pair(false, true));  // the faster one
}

TEST_CASE("as printed every region has a part, in compact order") {
  const planning_graph m = learner(8, 1e6);
  const cluster c = two_regions(1e5);
  const planning_problem problem(m, c, roofline{}, training(8));
  const plan_result printed = recipes::deepcee(problem, minimize_latency{}, 1, recipes::deepcee_as_printed());
  const plan_result first_level = recipes::deepcee(problem, minimize_latency{}, 1, recipes::deepcee_as_printed(false));
  const plan_result ours = recipes::deepcee(problem, minimize_latency{}, 1);
  REQUIRE(printed.status.ok());
  REQUIRE(first_level.status.ok());
  CHECK(printed.plans.front().plan.planner == "deepcee, compact");
  CHECK(ours.plans.front().evaluation.latency <= printed.plans.front().evaluation.latency);
  CHECK(printed.plans.front().evaluation.latency <= first_level.plans.front().evaluation.latency);
  for (const stage& s : first_level.plans.front().plan.stages) CHECK(s.devices.size() == 2);
}

TEST_CASE("deepcee outside training, within memory, and where nothing fits") {
  const planning_graph m = learner(8, 1e3);
  job inference = training(4);
  inference.workload.mode = mode::inference;
  const cluster c = two_regions(1e6);
  const planning_problem asked(m, c, roofline{}, inference);
  CHECK(recipes::deepcee(asked, minimize_latency{}, 1).status.ok());
  // State of a layer is 4 MB, activations 1 MB: two layers a device, and no more.
  const cluster tight = two_regions(1e6, 12e6);
  const planning_problem narrow(m, tight, roofline{}, training(4));
  const plan_result r = recipes::deepcee(narrow, minimize_latency{}, 1);
  REQUIRE(r.status.ok());
  for (const device_evaluation& d : r.plans.front().evaluation.devices) CHECK(d.peak_memory.value() <= 12e6 * (1 + 1e-9));
  const cluster hopeless = two_regions(1e6, 3e6);
  const planning_problem none(m, hopeless, roofline{}, training(4));
  const plan_result nothing = recipes::deepcee(none, minimize_latency{}, 1);
  CHECK(nothing.plans.empty());
  CHECK_FALSE(nothing.status.reason.empty());
}

TEST_CASE("a region without a link is told, and options that mean nothing") {
  const planning_graph m = learner(4, 1e3);
  route_table table;
  table.listed = {{"a", bytes_per_second(1e9)}};
  table.rules = {{"d0", "d1", route{seconds(0), {{resource_id(0)}}}}, {"d1", "d0", route{seconds(0), {{resource_id(0)}}}}};
  const cluster c("island", workers(3), table);
  const planning_problem problem(m, c, roofline{}, training(4));
  const plan_result apart = recipes::deepcee(problem, minimize_latency{}, 1);
  CHECK(apart.status.result == outcome::none_found);
  CHECK_THAT(apart.status.reason, Catch::Contains("d2"));
  const cluster two = two_regions(1e6);
  const planning_problem whole(m, two, roofline{}, training(4));
  recipes::deepcee_options none;
  none.modes.clear();
  CHECK_THROWS_WITH(recipes::deepcee(whole, minimize_latency{}, 1, none),
                    "deepcee: 0 modes, 6 splits and 5 orders; expected one of each at least");
  none = {.orders = {}};
  CHECK_THROWS_WITH(recipes::deepcee(whole, minimize_latency{}, 1, none), Catch::Contains("0 orders"));
}

TEST_CASE("ddp, zero2 and fsdp share evenly, whatever devices can do") {
  const planning_graph m = learner(4, 1e3);
  const cluster c = two_regions(1e9);
  job j = training(8);
  j.microbatch_sizes = {1, 4, 8};
  const planning_problem problem(m, c, roofline{}, j);
  std::vector<double> memory;
  for (const auto& [name, recipe, shard] : {std::tuple{"ddp", &recipes::ddp, sharding::none},
                                            {"zero2", &recipes::zero2, sharding::zero2},
                                            {"fsdp", &recipes::fsdp, sharding::fsdp}}) {
    const plan_result r = recipe(problem, minimize_latency{}, 2, {});
    REQUIRE(r.status.ok());
    CHECK(r.candidates == 2);  // a microbatch of 1 has no share for four
    const auto& [best, e] = r.plans.front();
    CHECK(best.planner == name);
    REQUIRE(best.stages.size() == 1);
    CHECK(best.stages[0].shard == shard);
    for (const assignment& a : best.stages[0].devices) CHECK(a.samples == best.microbatch_size / 4);
    memory.push_back(e.devices[0].peak_memory.value());
  }
  CHECK(memory[1] < memory[0]);
  CHECK(memory[2] < memory[1]);
  j.batch = 2;
  j.microbatch_sizes = {2};
  const planning_problem small(m, c, roofline{}, j);
  CHECK_THAT(recipes::ddp(small, minimize_latency{}).status.reason,
             Catch::Contains("has no microbatch of the job's sizes with one for each of 4 devices"));
  j.workload.mode = mode::inference;
  j.batch = 8;
  j.microbatch_sizes = {8};
  const planning_problem asked(m, c, roofline{}, j);
  CHECK_THAT(recipes::fsdp(asked, minimize_latency{}).status.reason, Catch::Contains("which only training has"));
}

}  // namespace test_deepcee
