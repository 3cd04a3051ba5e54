// SPDX-License-Identifier: BSL-1.0
// What limits each device of a run, and how its memory divides: by hand, and on random plans against the trace.

#include <hetplan/simulate/explain.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/plan/validate.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"
#include "support/search_instance.hpp"

namespace test_explain {

using namespace hetplan;
using namespace hetplan::test;

namespace {

/// 2 FLOP and 6 bytes of weights a sample on a device of 1 FLOP/s and 1 B/s: three rows compute as long as the weights are read.
device gpu(std::string name = "gpu") {
  device d = worker(std::move(name));
  d.memory_bandwidth = bytes_per_second(1);
  return d;
}
layer_spec product(std::string name = "a") {
  layer_spec l = work_of(std::move(name), 2);
  l.weight = 6_B;
  l.forward_activation = 1_B;
  return l;
}

void check_seconds(const use_seconds& found, const std::vector<std::pair<time_use, double>>& expected) {
  use_seconds wanted;
  for (const auto& [l, s] : expected) wanted[l] = s;
  for (const time_use l : time_uses) {
    INFO(std::string(to_string(l)));
    CHECK(found[l] == near(wanted[l]));
  }
}

run_explanation explained(const plan& p, const planning_graph& m, const cluster& c, const simulator_options& o = {}) {
  return explain(p, m, c, roofline{}, judged(p, m, c, o));
}

/// Checks that every used device's seconds fill each stretch, that its busy seconds are those of the trace, and that memory adds up.
void check_sums(const plan& p, const planning_graph& m, const cluster& c, const judgement& j) {
  const run_explanation e = explain(p, m, c, roofline{}, j);
  double end_s = 0;
  for (const run_stretch& r : e.stretches) {
    CHECK(r.start_s == end_s);
    end_s = r.end_s;
  }
  CHECK(end_s == j.trace.latency.value());
  for (std::size_t d = 0; d < c.size(); ++d) {
    double own_s = 0, idle_s = 0, memory_s = 0;
    for (const run_stretch& r : e.stretches) {
      const use_seconds& s = r.devices[d];
      CHECK(s.all() == Approx(j.graph.used[d] ? r.length_s() : 0).epsilon(1e-9).margin(1e-12 * end_s));
      own_s += s[time_use::compute] + s[time_use::weights] + s[time_use::activations] + s[time_use::cache] + s[time_use::tiers] +
               s[time_use::overhead];
      memory_s += s[time_use::weights] + s[time_use::activations] + s[time_use::cache];
      idle_s += s[time_use::waiting];
    }
    CHECK(own_s <= j.trace.busy_s[d] * (1 + 1e-9));
    CHECK(idle_s <= (end_s - j.trace.busy_s[d]) * (1 + 1e-9) + 1e-12 * end_s);
    if (c.devices()[d].power.tells_memory()) CHECK(memory_s == Approx(j.trace.memory_bound_s[d]).epsilon(1e-9).margin(1e-12 * end_s));
    const device_memory& held = e.memory[d];
    CHECK(held.held.all() + held.activations == Approx(j.trace.peak_bytes[d]).epsilon(1e-12).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("a prompt computes, the steps behind it read weights and cache") {
  layer_spec l = product();
  l.kv_bytes_per_token = 4_B;
  const planning_graph m = model_of({l}, {});
  plan p = plan_of(mode::generation, 1, 1, {stage_of({0}, {{0, 1}})});
  p.workload = {.mode = mode::generation, .tokens = 3, .prompt = 8};
  device d = gpu();
  d.launch = 0.25_s;
  d.overhead = 0.5_s;
  d.memory_overhead = 7_B;
  const run_explanation e = explained(p, m, cluster("alone", d));
  REQUIRE(e.stretches.size() == 2);
  // The prompt: 8 rows of 2 FLOP in 16 s (6 s for weights), 8 tokens read and 8 written: 64 s for the cache.
  CHECK(e.stretches[0].name == "prompt");
  check_seconds(e.stretches[0].devices[0], {{time_use::compute, 16}, {time_use::cache, 64}, {time_use::overhead, 0.75}});
  // Steps behind 8 and 9 tokens: 6 s for weights, 4 (9 + 1) and 4 (10 + 1) s for the cache.
  CHECK(e.stretches[1].name == "tokens");
  check_seconds(e.stretches[1].devices[0], {{time_use::weights, 12}, {time_use::cache, 84}, {time_use::overhead, 1.5}});
  CHECK(e.stretches[1].devices[0].largest() == time_use::cache);
  // 11 tokens of cache at the end; activations of the prompt's 8 tokens.
  CHECK(e.memory[0].held == held_bytes{.state = 6, .cache = 44, .overhead = 7});
  CHECK(e.memory[0].activations == 8);
}

TEST_CASE("what a device waits for is the network from the end of the task whose output it needs, else other work") {
  // a on d0 takes 2 s, its 3 bytes cross in 1 + 3 s, b on d1 takes 5 s.
  const planning_graph m = model_of({work_of("a", 2), work_of("b", 5)}, {{0, 1, 3}});
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})});
  const run_explanation e = explained(p, m, wired(2, 1));
  REQUIRE(e.stretches.size() == 1);
  CHECK(e.stretches[0].name == "run");
  check_seconds(e.stretches[0].devices[0], {{time_use::compute, 2}, {time_use::waiting, 9}});
  check_seconds(e.stretches[0].devices[1], {{time_use::compute, 5}, {time_use::network, 4}, {time_use::waiting, 2}});

  std::vector<device> both{worker("x"), worker("y")};
  both[0].send_overhead = 2_s;  // in the task of a: sending
  const run_explanation sends = explained(p, m, {"two", both, mesh{bytes_per_second(1), seconds(1)}});
  check_seconds(sends.stretches[0].devices[0], {{time_use::compute, 2}, {time_use::network, 2}, {time_use::waiting, 9}});
}

TEST_CASE("reading weights from tiers is a use of its own, tier by tier") {
  layer_spec l = product();
  const planning_graph m = model_of({l, product("b"), product("c")}, {{0, 1, 0}, {1, 2, 0}});
  device d = gpu();
  d.tiers = {{.name = "ram", .memory = 6_B, .bandwidth = bytes_per_second(0.5)},
             {.name = "disk", .memory = 6_B, .bandwidth = bytes_per_second(0.25)}};
  plan p = plan_of(mode::inference, 1, 1, {stage_of({0, 1, 2}, {{0, 1}})});
  p.stages[0].offload = {{layer_id(1), "disk"}, {layer_id(2), "ram"}};
  const cluster alone("alone", d);
  const run_explanation e = explained(p, m, alone);
  // a: 6 s for its weights; b and c compute for 2 s each, behind 24 s and 12 s of reading.
  check_seconds(e.stretches[0].devices[0], {{time_use::weights, 6}, {time_use::compute, 4}, {time_use::tiers, 36}});
  CHECK(e.stretches[0].devices[0].of_tier(0) == near(12));
  CHECK(e.stretches[0].devices[0].of_tier(1) == near(24));
  CHECK(e.memory[0].held.state == 6);
  CHECK(describe(e, alone) ==
        "  gpu          memory  weights 0.006 kB, activations 0.003 kB\n"
        "               run     compute 8.7 %, weights 13.0 %, tier ram 26.1 %, tier disk 52.2 %\n");

  // A tier of a resource: the task waits for the read.
  d.tiers = {{.name = "disk", .memory = 12_B, .bandwidth = bytes_per_second(9), .resource = "r0"}};
  const cluster host("host", std::vector<device>{d, gpu("other")}, route_table{{{"r0", bytes_per_second(2)}}, {}});
  p.stages[0].offload = {{layer_id(1), "disk"}, {layer_id(2), "disk"}};
  const run_explanation waits = explained(p, m, host);
  check_seconds(waits.stretches[0].devices[0], {{time_use::weights, 6}, {time_use::compute, 4}, {time_use::tiers, 6}});
  CHECK(waits.stretches[0].devices[0].of_tier(0) == near(6));
}

TEST_CASE("activations, exchange among accelerators and a cost model without parts") {
  layer_spec l = work_of("a", 2);
  l.traffic = 4_B;
  l.weight = 2_B;
  l.weight_traffic = 2_B;
  const planning_graph m = model_of({l}, {});
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}})});
  check_seconds(explained(p, m, cluster("alone", gpu())).stretches[0].devices[0], {{time_use::weights, 2}, {time_use::activations, 4}});

  const planning_graph two = model_of({work_of("a", 8), work_of("b", 8)}, {{0, 1, 3}});
  plan split = plan_of(mode::inference, 1, 1, {stage_of({0, 1}, {{0, 1}})});
  split.stages[0].devices[0].tensor_parallel = 2;
  device d = worker("gpu");
  d.accelerators = 2;
  d.interconnect = bytes_per_second(1);
  // 2 (2 - 1) / 2 of 3 bytes behind a.
  check_seconds(explained(split, two, cluster("alone", d)).stretches[0].devices[0], {{time_use::compute, 8}, {time_use::network, 3}});

  struct told_nothing {
    [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.batch * 3); }
  };
  const cluster c("alone", gpu());
  const any_cost_model plain = told_nothing{};
  check_seconds(explain(p, m, c, plain, judge(p, m, c, plain)).stretches[0].devices[0], {{time_use::compute, 3}});
}

TEST_CASE("a run of slower devices keeps its shares") {
  const planning_graph m = model_of({product()}, {});
  simulator_options half;
  half.speeds = {{0_s, device_id(0), 0.5}};
  const plan p = plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}})});
  check_seconds(explained(p, m, cluster("alone", gpu()), half).stretches[0].devices[0], {{time_use::weights, 12}});
}

TEST_CASE("without a prompt the whole run is tokens; one token of a prompt has no steps") {
  const planning_graph m = model_of({product()}, {});
  plan p = plan_of(mode::generation, 1, 1, {stage_of({0}, {{0, 1}})});
  p.workload = {.mode = mode::generation, .tokens = 3, .prompt = 0};
  run_explanation e = explained(p, m, cluster("alone", gpu()));
  REQUIRE(e.stretches.size() == 1);
  CHECK(e.stretches[0].name == "tokens");
  check_seconds(e.stretches[0].devices[0], {{time_use::weights, 18}});
  p.workload = {.mode = mode::generation, .tokens = 1, .prompt = 8};
  e = explained(p, m, cluster("alone", gpu()));
  REQUIRE(e.stretches.size() == 1);
  CHECK(e.stretches[0].name == "prompt");
}

TEST_CASE("on random plans the seconds fill the run, and memory and memory-bound time are those of the trace") {
  const std::uint64_t seed = first_seed();
  for (std::uint64_t s = 0; s < 400; ++s) {
    random_source random(seed + s);
    instance i = random_instance(seed + s, all_plan_kinds[s % all_plan_kinds.size()]);
    for (device& d : i.devices) {
      if (random.chance(0.5)) d.memory_bandwidth = bytes_per_second(random.between(1e7, 1e10));
      if (random.chance(0.5)) d.power.memory = d.power.idle + 0.5 * (d.power.active - d.power.idle);
      if (random.chance(0.3)) d.overhead = seconds(random.between(0, 1e-2));
      if (random.chance(0.3)) d.send_overhead = seconds(random.between(0, 1e-2));
    }
    INFO("seed " << seed + s);
    const planning_graph m = i.model();
    const cluster c = i.cluster();
    if (validate(i.plan, m, c)) continue;
    check_sums(i.plan, m, c, judge(i.plan, m, c, roofline{}));
  }
}

}  // namespace test_explain
