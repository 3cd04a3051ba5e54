// SPDX-License-Identifier: BSL-1.0
/// Valid jobs that planners refused, ran into the ground or answered with plans that no judge takes.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/hetplan.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/dora.hpp>

#include "support/message_of.hpp"
#include "support/random_source.hpp"

namespace test_hard_jobs {

using namespace hetplan;

namespace {

planning_graph chain_of(const std::vector<layer_spec>& layers, int tokens = 1) {
  planning_graph_builder b("m", model_facts{.tokens_per_sample = tokens});
  for (const layer_spec& l : layers) b.add_layer(l);
  for (std::size_t i = 1; i < layers.size(); ++i) b.add_edge(layer_id(i - 1), layer_id(i), 4_B);
  return std::move(b).build();
}
device of(std::string name, double memory, double compute = 100) {
  return {.name = std::move(name), .memory = bytes(memory), .compute = flops_per_second(compute)};
}
cluster joined(std::vector<device> devices) { return {"c", std::move(devices), shared_medium{bytes_per_second(10)}}; }
job generation(int prompt, int chunk = 0, int tokens = 16) {
  job j{.batch = 1};
  j.workload = {.mode = mode::generation, .tokens = tokens, .prompt = prompt, .prompt_chunk = chunk};
  return j;
}

struct setting {
  planning_graph model;
  hetplan::cluster cluster;
  job wanted;

  [[nodiscard]] planning_problem problem() const { return {model, cluster, roofline{}, wanted}; }
};

}  // namespace

TEST_CASE("a stage without work in any pass can be planned: a tower without a prompt") {
  const planning_graph model =
      chain_of({{.name = "tower", .forward_flops = flops(10), .weight = 40_B, .sequence = {.per = layer_scope::request}},
                {.name = "text", .forward_flops = flops(10), .weight = 40_B}},
               4);
  const setting s{model, joined({of("d0", 70), of("d1", 70)}), generation(0)};
  const planning_problem p = s.problem();
  const plan_result r = recipes::dora(p, minimize_latency{});
  REQUIRE(r.status.ok());
  CHECK(r.plans.front().plan.stages.size() == 2);
  CHECK_NOTHROW(recipes::edgeshard(p, minimize_latency{}));
  CHECK_NOTHROW(recipes::alpa(p, minimize_latency{}));
}

TEST_CASE("plans have degrees of tensor parallelism that their layers allow, wherever layers move") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    test::random_source random(seed);
    INFO("seed " << seed);
    std::vector<layer_spec> layers;
    for (int i = random.integer(2, 5); i > 0; --i) {
      layer_spec l{
          .name = "l" + std::to_string(i), .forward_flops = flops(random.integer(1, 4) * 50), .weight = bytes(random.integer(0, 4) * 20)};
      if (random.chance(0.5)) l.degrees = random.chance(0.5) ? std::vector{1, 3} : std::vector{1, 2, 4};
      layers.push_back(l);
    }
    std::vector<device> devices;
    for (int i = random.integer(1, 3); i > 0; --i) {
      device d = of("d" + std::to_string(i), random.integer(2, 20) * 20);
      d.accelerators = random.integer(1, 4);
      if (random.chance(0.8)) d.interconnect = bytes_per_second(100);
      devices.push_back(d);
    }
    job j{.batch = random.integer(1, 3)};
    j.workload.mode = random.chance(0.5) ? mode::training : mode::inference;
    const setting s{chain_of(layers), joined(devices), j};
    const planning_problem p = s.problem();
    const plan_result r = recipes::dora(p, minimize_latency{});  // the judge throws where a layer does not allow a degree
    for (const ranked_plan& x : r.plans) CHECK(!validate(x.plan, p.model, p.cluster));
    CHECK_NOTHROW(recipes::dapple(p, minimize_latency{}));
    CHECK_NOTHROW(recipes::alpa(p, minimize_latency{}));
    CHECK_NOTHROW(recipes::pipedream(p, minimize_latency{}));
  }
}

TEST_CASE("limits of time are kept up to rounding, and plans that break one alike are ranked by what the job wants") {
  const planning_graph model = chain_of({{.name = "a", .forward_flops = flops(30)}}, 3);
  device cheap = of("cheap", 1000), dear = of("dear", 1000, 101);
  cheap.power = {1_W, 10_W};
  dear.power = {1_W, 1000_W};
  job j = generation(3, 1, 2);  // three chunks of 0.1 s, whose sum is more than 0.3 s
  j.objective = objective_kind::energy;
  j.qoe.ttft = seconds(0.3);
  const setting s{model, joined({cheap, dear}), j};
  const planning_problem p = s.problem();
  const plan_result r = recipes::dora(p, objective_of_job(j));
  REQUIRE(r.status.ok());
  CHECK(p.cluster[r.plans.front().plan.stages.front().devices.front().device].name == "cheap");

  const objective_of_job o(j);
  const run_times late(1_s, 0.4_s, 0.1_s), alike(1_s, seconds(0.4 + 1e-15), 0.1_s);
  CHECK(o.score(alike, 1_J) < o.score(late, 2_J));
  CHECK(o.score(late, 1_J) < o.score(alike, 2_J));
  CHECK(o.score(run_times(1_s, 0.3_s, 0.1_s), 5_J) == 5);
  CHECK(o.score(run_times(1_s, 0.39_s, 0.1_s), 9_J) < o.score(late, 1_J));
}

TEST_CASE("chunks in flight are limited for devices with one stage of a pipeline") {
  const planning_graph model = chain_of({{.name = "a", .forward_flops = flops(100), .weight = 10_B},
                                         {.name = "b", .forward_flops = flops(100), .weight = 10_B},
                                         {.name = "c", .forward_flops = flops(100), .weight = 10_B},
                                         {.name = "d", .forward_flops = flops(100), .weight = 10_B}},
                                        8);
  job j = generation(8, 1);
  plan p{.model = "m", .cluster = "c", .workload = j.workload, .microbatch_size = 1};
  const auto stage_of = [](std::string name, std::vector<int> layers, int device) {
    stage s{.name = std::move(name), .devices = {{device_id(static_cast<std::size_t>(device)), 1}}};
    for (const int l : layers) s.layers.emplace_back(l);
    return s;
  };
  p.stages = {stage_of("s0", {0}, 0), stage_of("s1", {1, 2}, 1), stage_of("s2", {3}, 0)};
  p.schedule.kind = schedule_kind::explicit_orders;
  const auto f = [](std::size_t s) { return order_entry{phase::forward, stage_id(s), 0}; };
  p.schedule.orders = {{f(0), f(2)}, {f(1)}};
  const cluster two = joined({of("d0", 1000), of("d1", 1000)});
  CHECK_NOTHROW(judge(p, model, two, roofline{}));
  p.workload.chunks_in_flight = 8;
  CHECK_NOTHROW(judge(p, model, two, roofline{}));
  p.workload.chunks_in_flight = 7;
  CHECK(test::message_of([&] { return judge(p, model, two, roofline{}); }) ==
        "plan: /workload/chunks_in_flight: cyclic order at device \"d0\": chunks of stage \"s0\" wait for chunks in flight that stage "
        "\"s2\" has "
        "to pass behind them; expected one stage of a pipeline on each device, or any number of chunks in flight");
  for (int k = 1; k <= 8; ++k) {
    j.workload.chunks_in_flight = k;
    const setting s{model, joined({of("d0", 25), of("d1", 25, 150), of("d2", 35, 70)}), j};
    const planning_problem problem = s.problem();
    CHECK(recipes::dora(problem, minimize_latency{}).status.ok());
  }
}

TEST_CASE("a layer that moves its weights takes as long for a few tokens as for one, and its model is not accused") {
  planning_graph_builder b("whole", {.bytes_per_parameter = 2, .tokens_per_sample = 512});
  b.add_layer({.name = "all", .forward_flops = 8_TFLOP, .weight = 16_GB});
  device d = of("gpu", 24e9, 165e12);
  d.memory_bandwidth = bytes_per_second(1e12);
  const setting s{std::move(b).build(), cluster("one", {d}, shared_medium{1_Gbit_per_s}), generation(16)};
  const planning_problem p = s.problem();
  CHECK(recipes::dora(p, minimize_latency{}).status.ok());
}

TEST_CASE("a view of equal devices leaves each what the runtime leaves of the least memory") {
  device large = of("d0", 10);
  large.memory_overhead = 1_B;
  const setting s{chain_of({{.name = "a", .forward_flops = flops(1)}}), joined({large, of("d1", 1)}), job{.batch = 1}};
  const planning_problem p = s.problem();
  CHECK(recipes::alpa(p, minimize_latency{}).status.ok());
  CHECK(recipes::dora(p, minimize_latency{}).status.ok());
  const cluster alike = homogeneous(p.cluster, device_id(0));
  for (const device& d : alike.devices()) CHECK(d.memory_for_layers() == 1_B);
}

TEST_CASE("the best plans of a planner are different plans") {
  const planning_graph model =
      chain_of({{.name = "a", .forward_flops = flops(100), .weight = 10_B}, {.name = "b", .forward_flops = flops(50), .weight = 10_B}});
  const setting s{model, joined({of("d0", 1000), of("d1", 1000, 50)}), job{.batch = 2}};
  const planning_problem p = s.problem();
  const plan_result r = recipes::dora(p, minimize_latency{}, 10);
  REQUIRE(r.plans.size() > 1);
  for (std::size_t i = 0; i < r.plans.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      plan other = r.plans[k].plan;
      other.planner = r.plans[i].plan.planner;
      CHECK(!(other == r.plans[i].plan));
    }
  }
}

}  // namespace test_hard_jobs
