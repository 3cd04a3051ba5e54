// SPDX-License-Identifier: BSL-1.0
// Weights below a device's memory: closed forms, reads that share a resource, what is refused, bounds.

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/estimate/bounds.hpp>
#include <hetplan/estimate/estimate.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/by_hand.hpp"
#include "support/message_of.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// Ten layers of 4 GB.
planning_graph forty_gigabytes() {
  planning_graph_builder b("forty", {.bytes_per_parameter = 2, .tokens_per_sample = 1});
  std::vector<layer_id> layers;
  for (int i = 0; i < 10; ++i) {
    layers.push_back(b.add_layer({.name = "l" + std::to_string(i), .forward_flops = flops(2), .weight = 4_GB, .traffic = bytes{}}));
    if (i > 0) b.add_edge(layers[static_cast<std::size_t>(i) - 1], layers.back(), bytes{});
  }
  return std::move(b).build();
}

device card() {
  device d;
  d.name = "card";
  d.memory = 24_GB;
  d.compute = flops_per_second(100e12);
  d.memory_bandwidth = bytes_per_second(936e9);
  d.tiers = {{.name = "ram", .memory = 64_GB, .bandwidth = bytes_per_second(25e9)}};
  return d;
}

plan one_step(int offloaded) {
  plan p = plan_of(mode::generation, 1, 1, {stage_of({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {{0, 1}})});
  p.workload.tokens = 1;
  for (int l = 10 - offloaded; l < 10; ++l) p.stages[0].offload.push_back({layer_id(l), "ram"});
  return p;
}

std::string fault_of(const plan& p, const planning_graph& m, const cluster& c) {
  const auto v = validate(p, m, c);
  return v ? v->where + ": " + v->what : "";
}

}  // namespace

TEST_CASE("a step of 40 GB on 24 GB takes 24 GB from memory and 16 GB from RAM, one after the other") {
  const planning_graph m = forty_gigabytes();
  const cluster c("home", card());
  const judgement j = judged(one_step(4), m, c);
  CHECK(j.evaluation.latency.value() == Approx(24.0 / 936 + 16.0 / 25).epsilon(1e-9));
  CHECK(j.evaluation.latency.value() == Approx(0.6656).epsilon(1e-4));
  CHECK(j.evaluation.devices[0].peak_memory == 24_GB);
  CHECK(judged(one_step(0), m, c).evaluation.latency.value() == Approx(40.0 / 936).epsilon(1e-9));
  CHECK(judged(one_step(0), m, c).evaluation.devices[0].peak_memory == 40_GB);
  CHECK(tier_bytes(one_step(4), m, c)[0][0] == 16e9);
}

TEST_CASE("the bound of a plan with weights in tiers is that of the linear program over memory and tiers") {
  const planning_graph m = forty_gigabytes();
  const cluster c("home", card());
  const evaluation e = evaluate(one_step(4), m, c, roofline{}, {}, glpk_lp{}).evaluation;
  CHECK(e.bound.value() == Approx(e.latency.value()).epsilon(1e-9));  // one sequence: the work is the latency
  CHECK(e.gap >= -1e-9);
  CHECK(evaluate(one_step(10), m, c, roofline{}, {}, glpk_lp{}).evaluation.gap > 1);
}

TEST_CASE("tensor parallelism does not divide what comes from a tier, and experts count as far as they are taken") {
  planning_graph_builder b("experts", {.bytes_per_parameter = 2, .tokens_per_sample = 1});
  b.add_layer({.name = "moe",
               .forward_flops = flops(2),
               .weight = bytes(100),
               .traffic = bytes{},
               .sequence = {.experts = expert_weights{.total = 4, .active = 1, .weight = bytes(80)}}});
  const planning_graph m = std::move(b).build();
  device d = worker("d0");
  d.memory_bandwidth = bytes_per_second(10);
  d.accelerators = 2;
  d.interconnect = bytes_per_second(1);
  d.tiers = {{.name = "disk", .memory = bytes(100), .bandwidth = bytes_per_second(5)}};
  const cluster c("one", d);
  plan p = plan_of(mode::generation, 2, 1, {stage_of({0}, {{0, 2}})});
  p.workload.tokens = 1;
  p.stages[0].devices[0].tensor_parallel = 2;
  p.stages[0].offload = {{layer_id(0), "disk"}};
  const double read = 20 + 80 * (1 - 0.75 * 0.75);  // two rows
  CHECK(judged(p, m, c).evaluation.latency.value() == near(2 * 2 / 2.0 + read / 5));
}

TEST_CASE("a profiled layer reads its tier on top of what was measured") {
  planning_graph_builder b("profiled");
  b.add_layer({.name = "a", .weight = bytes(10), .trainable = false, .profiles = {{"d0", {1}, {3}, {4}}}});
  const planning_graph m = std::move(b).build();
  device d = worker("d0");
  d.tiers = {{.name = "disk", .memory = bytes(10), .bandwidth = bytes_per_second(5)}};
  const cluster c("one", d);
  plan p = plan_of(mode::training, 1, 1, {stage_of({0}, {{0, 1}})});
  p.workload.optimizer_factor = 0;
  p.stages[0].offload = {{layer_id(0), "disk"}};
  // F; B and W share the backward in halves, for neither has FLOP, and each reads.
  CHECK(judge(p, m, c, profiled_or_roofline{}).evaluation.latency.value() == near(3 + 2 + 2 + 2 + 2 + 2));
}

TEST_CASE("reads over a resource begin with their tasks and share it; a device that waits is not busy") {
  planning_graph_builder b("two");
  for (const char* name : {"a", "b"}) b.add_layer({.name = name, .forward_flops = flops(1), .weight = bytes(6), .traffic = bytes{}});
  const planning_graph m = std::move(b).build();
  std::vector<device> devices = workers(2);
  for (device& d : devices) d.tiers = {{.name = "disk", .memory = bytes(6), .bandwidth = bytes_per_second(9), .resource = "r0"}};
  const cluster c("host", devices, route_table{{{"r0", bytes_per_second(2)}}, {}});
  plan p = plan_of(mode::inference, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  p.stages[0].offload = {{layer_id(0), "disk"}};
  p.stages[1].offload = {{layer_id(1), "disk"}};
  const judgement both = judged(p, m, c);
  // 12 bytes at 2 B/s for both: 6 s; then 1 s of work; again.
  check_interval(when(both, phase::forward, 0, 0), 6, 7);
  check_interval(when(both, phase::forward, 1, 1), 13, 14);
  CHECK(both.evaluation.devices[0].busy.value() == near(2));
  CHECK(both.evaluation.resource_bytes[0].value() == near(24));
  CHECK(both.trace.sent_bytes[0] == 0);
  p.stages[1].offload.clear();
  check_interval(when(judged(p, m, c), phase::forward, 0, 1), 4 + 3, 8);  // alone at 2 B/s
  for (device& d : devices) d.tiers[0].bandwidth = bytes_per_second(1);
  const cluster slow = c.with_devices(devices);
  check_interval(when(judged(p, m, slow), phase::forward, 0, 0), 6, 7);  // no faster than the tier
  for (const sharing policy : all_sharings) {
    p.sharing_policy = policy;
    CHECK(judged(p, m, slow).evaluation.latency.value() == near(14));
  }
  CHECK(estimate(p, m, slow, roofline{}).latency.value() == near(14));
}

TEST_CASE("what may not lie in a tier is refused, by stage and layer") {
  const planning_graph m = forty_gigabytes();
  const cluster c("home", card());
  plan p = one_step(4);
  p.stages[0].offload[0].tier = "rom";
  CHECK(fault_of(p, m, c) == "/stages/0/offload/l6: expected a tier of device \"card\" (\"ram\"), got \"rom\"");
  p = one_step(4);
  p.stages[0].offload[1].layer = layer_id(6);
  CHECK(fault_of(p, m, c) == "/stages/0/offload/l6: expected each layer once, in ascending order");
  p.stages[0].offload[1].layer = layer_id(99);
  CHECK(fault_of(p, m, c) == "/stages/0/offload: expected layers of the stage, got id 99");
  device small = card();
  small.tiers[0].memory = 15_GB;
  CHECK(fault_of(one_step(4), m, cluster("home", small)) ==
        "/stages/0/offload: expected weights that fit into tier \"ram\" of device \"card\", 1.5e+10 bytes, got 1.6e+10");
  CHECK(fault_of(one_step(3), m, cluster("home", small)).empty());
  p = one_step(4);
  p.workload.mode = mode::training;
  CHECK(fault_of(p, m, c) == "/stages/0/offload/l6: layer \"l6\" is trained; expected its weights in the devices' memory");
  device other = worker("plain");
  const cluster two("two", {card(), other}, mesh{bytes_per_second(1), {}});
  p = one_step(4);
  p.microbatch_size = 2;
  p.stages[0].devices.push_back({device_id(1), 1});
  CHECK(fault_of(p, m, two) == "/stages/0/offload/l6: expected a tier of device \"plain\" (it has none), got \"ram\"");
}

TEST_CASE("a tier of no resource of the network, or of a doubtful size, is bad input") {
  device d = card();
  d.tiers[0].resource = "bus";
  CHECK(message_of([&] { cluster("home", d); }) ==
        "cluster \"home\": tier \"ram\" of device \"card\" has the resource \"bus\"; expected one of the network");
  d = card();
  d.tiers.push_back(d.tiers[0]);
  CHECK(message_of([&] { cluster("home", d); }) == "device \"card\": tier \"ram\" appears twice");
  d = card();
  d.tiers[0].bandwidth = {};
  CHECK(message_of([&] { cluster("home", d); }) == "device \"card\": tier \"ram\": bandwidth = 0; expected a rate > 0");
}

TEST_CASE("a cost model that does not look at tiers is refused where devices have some") {
  struct blind {
    [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.batch); }
  };
  const planning_graph m = forty_gigabytes();
  const cluster c("home", card());
  job j{.workload = {.mode = mode::inference}, .batch = 1};
  CHECK(message_of<invalid_model>([&] { planning_problem(m, c, blind{}, j); }).find("expected a model that adds work::tier_time()") !=
        std::string::npos);
  CHECK(message_of<invalid_model>([&] { static_cast<void>(judge(one_step(4), m, c, blind{})); }).find("tier_time()") != std::string::npos);
  CHECK_NOTHROW(static_cast<void>(judge(one_step(0), m, c, blind{})));
  device bare = card();
  bare.tiers.clear();
  const cluster without("home", bare);
  CHECK_NOTHROW(planning_problem(m, without, blind{}, j));
}

TEST_CASE("views of planners read tiers alone; equal devices have none") {
  std::vector<device> devices = workers(2);
  for (device& d : devices) d.tiers = {{.name = "disk", .memory = bytes(6), .bandwidth = bytes_per_second(9), .resource = "r0"}};
  const cluster c("host", devices, route_table{{{"r0", bytes_per_second(2)}}, {}});
  const memory_tier own = uncontended(c)[device_id(0)].tiers.at(0);
  CHECK(own.bandwidth == bytes_per_second(2));
  CHECK_FALSE(own.shared.valid());
  CHECK(without_network_costs(c)[device_id(1)].tiers.at(0) == own);
  CHECK(homogeneous(c)[device_id(0)].tiers.empty());
}
