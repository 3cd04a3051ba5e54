// SPDX-License-Identifier: BSL-1.0
// Work that memory bounds, by hand. Devices do 1 FLOP/s, move 1 B/s and draw 10 W idle, 100 W in arithmetic, 40 W bound by memory.

#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_memory_bound {

using namespace hetplan;
using namespace hetplan::test;

device gpu() {
  device d = worker("gpu");
  d.memory_bandwidth = bytes_per_second(1);
  d.power = {.idle = 10_W, .active = 100_W, .memory = 40_W};
  return d;
}
/// 2 FLOP a sample, B 1 and W 3, with 6 bytes of weights: to read them takes as long as three samples in F.
layer_spec product(std::string name = "a") {
  layer_spec l = work_of(std::move(name), 2, 1, 3);
  l.weight = 6_B;
  return l;
}
stage all_of(const planning_graph& m, int samples) {
  stage s = stage_of({}, {{0, samples}});
  for (const layer& l : m.layers()) s.layers.push_back(l.id);
  return s;
}
judgement alone(const planning_graph& m, const device& d, mode how, int samples, const simulator_options& o = {}) {
  return judged(plan_of(how, samples, 1, {all_of(m, samples)}), m, cluster("alone", d), o);
}
void check_energy(const judgement& j, double busy_s, double memory_bound_s, double energy_J) {
  CHECK(j.trace.busy_s[0] == near(busy_s));
  CHECK(j.trace.memory_bound_s[0] == near(memory_bound_s));
  CHECK(j.evaluation.devices[0].energy.value() == near(energy_J));
}
double memory_s(const work& w, const device& d) { return roofline{}.parts(w, d).memory_bound().value(); }

TEST_CASE("the roofline is bound by memory in those of its two kernels whose traffic takes longer") {
  const planning_graph m = model_of({product()}, {});
  const layer& a = m.layers()[0];
  CHECK(memory_s({.layer = a, .batch = 1}, gpu()) == 6);
  CHECK(memory_s({.layer = a, .batch = 2}, gpu()) == 6);
  CHECK(memory_s({.layer = a, .batch = 3}, gpu()) == 0);  // as long as arithmetic: that is the limit
  CHECK(memory_s({.layer = a, .batch = 4}, gpu()) == 0);
  CHECK(memory_s({.layer = a, .phase = phase::backward_input, .batch = 4}, gpu()) == 6);
  CHECK(memory_s({.layer = a, .phase = phase::backward_weight, .batch = 4}, gpu()) == 0);
  device slow = gpu();
  slow.half_batch = 4;  // (1 + 4) * 2 FLOP
  CHECK(memory_s({.layer = a, .batch = 1}, slow) == 0);

  device two = gpu();
  two.accelerators = 2;
  two.interconnect = 1_GB_per_s;
  two.launch = 5_s;
  CHECK(memory_s({.layer = a, .batch = 1, .tensor_parallel = 2}, two) == 3);

  // Attention of 1 FLOP a pair and a cache of 4 B a token: one new token behind 9 moves 4 * (10 + 1) bytes.
  layer_spec l = product();
  l.forward_flops = 3_FLOP;
  l.sequence.attention_flops = 1_FLOP;
  l.kv_bytes_per_token = 4_B;
  const planning_graph both = model_of({l}, {});
  const layer& attends = both.layers()[0];
  CHECK(memory_s({.layer = attends, .batch = 1, .context = 9, .tokens = 1, .cached = true}, gpu()) == 6 + 44);
  CHECK(memory_s({.layer = attends, .batch = 4, .context = 9, .tokens = 1, .cached = true}, gpu()) == 4 * 44);
  CHECK(memory_s({.layer = attends, .batch = 1, .tokens = 1}, gpu()) == 6);  // without a cache
}

TEST_CASE("what the roofline says is bound by memory is a part of its time") {
  const std::uint64_t seed = first_seed();
  INFO("seed " << seed);
  random_source random(seed);
  for (int round = 0; round < 500; ++round) {
    layer_spec l = work_of("l", random.between(0.1, 9), random.between(0, 9), random.between(0, 9));
    l.weight = bytes(random.between(0, 40));
    l.traffic = bytes(random.between(0, 4));
    const planning_graph m = model_of({l}, {});
    device d = gpu();
    d.launch = seconds(random.chance(0.5) ? 0 : random.between(0, 1));
    const auto what = static_cast<phase>(random.integer(0, 2));
    const work w{.layer = m.layers()[0], .phase = what, .batch = random.between(1, 9)};
    CHECK(memory_s(w, d) >= 0);
    CHECK(memory_s(w, d) <= roofline{}.time(w, d).value());
  }
}

TEST_CASE("a layer that decodes, one that computes, and a stage of both, draw what they are bound by") {
  const planning_graph one = model_of({product()}, {});
  check_energy(alone(one, gpu(), mode::inference, 1), 6, 6, 6 * 40);
  check_energy(alone(one, gpu(), mode::inference, 4), 8, 0, 8 * 100);

  const planning_graph mixed = model_of({product(), work_of("b", 5)}, {{0, 1, 0}});
  check_energy(alone(mixed, gpu(), mode::inference, 1), 11, 6, 6 * 40 + 5 * 100);
  device d = gpu();
  d.launch = 0.25_s;  // and overhead: not bound by memory
  d.overhead = 0.5_s;
  check_energy(alone(mixed, d, mode::inference, 1), 12, 6, 6 * 40 + 6 * 100);
}

TEST_CASE("a prompt draws the power of arithmetic, the steps behind it that of memory") {
  const planning_graph m = model_of({product()}, {});
  plan p = plan_of(mode::generation, 1, 1, {all_of(m, 1)});
  p.workload = {.mode = mode::generation, .tokens = 3, .prompt = 8};
  const cluster c("alone", gpu());
  check_energy(judged(p, m, c), 16 + 2 * 6, 2 * 6, 16 * 100 + 12 * 40);
  const roofline cost;
  const stage_costs s(p, m, c, cost);
  CHECK(s.of_run(stage_id(0), 0, 0).memory_bound.forward_s == 0);
  CHECK(s.of_run(stage_id(0), 0, 1).memory_bound.forward_s == 6);
  CHECK(s[stage_id(0)].devices[0].memory_bound.forward_s == near(12.0 / 3));  // the mean
}

TEST_CASE("in training each phase counts, and a forward that is run again") {
  // 3 samples: F 6 s of either, B 6 s of memory beside 3, W 9 s of arithmetic.
  const planning_graph m = model_of({product()}, {});
  check_energy(alone(m, gpu(), mode::training, 3), 21, 6, 6 * 40 + 15 * 100);
  // 2 samples: F 6 s of memory, B 6, W 6 of either.
  check_energy(alone(m, gpu(), mode::training, 2), 18, 12, 12 * 40 + 6 * 100);
  plan p = plan_of(mode::training, 2, 1, {all_of(m, 2)});
  p.stages[0].recompute = recomputation::stage;
  check_energy(judged(p, m, cluster("alone", gpu())), 24, 18, 18 * 40 + 6 * 100);
  plan split = plan_of(mode::training, 2, 1, {all_of(m, 2)}, schedule_kind::explicit_orders);
  split.schedule.orders = {order_of("F0.0 B0.0 W0.0")};
  check_energy(judged(split, m, cluster("alone", gpu())), 18, 12, 12 * 40 + 6 * 100);
}

TEST_CASE("units under zero2 and fsdp are bound by memory as the whole stage is") {
  const planning_graph m = model_of({product("a"), work_of("b", 5, 5, 5), product("c")}, {{0, 1, 0}, {1, 2, 0}});
  std::vector<device> both{gpu(), gpu()};
  both[1].name = "other";
  const cluster c("pair", both, shared_medium{bytes_per_second(1e9)});
  const auto memory_of = [&](sharding how) {
    plan p = plan_of(mode::training, 4, 1, {stage_of({0, 1, 2}, {{0, 2}, {1, 2}})});
    p.stages[0].shard = how;
    return judged(p, m, c).trace.memory_bound_s;
  };
  CHECK(memory_of(sharding::none)[0] == near(24));
  for (const sharding how : {sharding::zero2, sharding::fsdp}) CHECK(memory_of(how)[1] == near(24));
}

TEST_CASE("a slower device, or a run that is cut off, keeps the share that is bound by memory") {
  const planning_graph mixed = model_of({product(), work_of("b", 5)}, {{0, 1, 0}});
  simulator_options half;
  half.speeds = {{0_s, device_id(0), 0.5}};
  check_energy(alone(mixed, gpu(), mode::inference, 1, half), 22, 12, 12 * 40 + 10 * 100);
  simulator_options cut;
  cut.until = 5.5_s;
  check_energy(alone(mixed, gpu(), mode::inference, 1, cut), 5.5, 3, 3 * 40 + 2.5 * 100);
  device sends = gpu();
  sends.send_overhead = 2_s;  // sending prolongs the task, not what is bound by memory
  std::vector<device> both{sends, gpu()};
  both[1].name = "other";
  const planning_graph chain = model_of({product(), work_of("b", 5)}, {{0, 1, 1}});
  check_energy(judged(plan_of(mode::inference, 1, 1, {stage_of({0}, {{0, 1}}), stage_of({1}, {{1, 1}})}), chain,
                      cluster("pair", both, shared_medium{bytes_per_second(1)})),
               9, 7, 15 * 10 + 7 * 30 + 2 * 90);  // the output of 1 B moves, too
}

TEST_CASE("without a power for memory, or with the active one, the energy is what it was, bit for bit") {
  const planning_graph mixed = model_of({product(), work_of("b", 5)}, {{0, 1, 0}});
  device without = gpu(), same = gpu();
  without.power.memory = {};
  same.power.memory = same.power.active;
  for (device* d : {&without, &same}) {
    d->power.idle = 0.1_W;  // rounds
    d->launch = 0.7_s;
    const judgement j = alone(mixed, *d, mode::training, 1);
    CHECK(j.trace.memory_bound_s[0] == 0);
    CHECK(j.evaluation.devices[0].energy ==
          d->power.idle * j.evaluation.latency + (d->power.active - d->power.idle) * seconds(j.trace.busy_s[0]));
  }
}

TEST_CASE("a profile does not tell what memory bounds") {
  layer_spec l = product();
  l.profiles = {{.device_kind = "gpu", .batch = {1}, .forward_s = {6}, .backward_s = {}}};
  const planning_graph m = model_of({l, product("b")}, {{0, 1, 0}});
  const work profiled_one{.layer = m.layers()[0]}, other{.layer = m.layers()[1]};
  device d = gpu();
  d.kind = "gpu";
  CHECK(profiled_or_roofline{}.parts(profiled_one, d) == time_parts{.compute = 6_s});
  CHECK(profiled_or_roofline{}.parts(other, d) == time_parts{.weights = 6_s});
  CHECK(any_cost_model(profiled{}).parts(profiled_one, d) == time_parts{.compute = 6_s});
}

/// A model of its own: a second a sample, of which a share is bound by memory.
struct shared {
  double share;
  [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.batch); }
  [[nodiscard]] time_parts parts(const work& w, const device&) const {
    return {.compute = seconds((1 - share) * w.batch), .weights = seconds(share * w.batch)};
  }
};
struct plain_shared {
  [[nodiscard]] double time(const work& w, const device&) const { return w.batch; }
  [[nodiscard]] time_parts parts(const work& w, const device& d) const { return shared{0.5}.parts(w, d); }
};
static_assert(times_parts<shared> && times_parts<assume_si<plain_shared>> && times_parts<slowed<shared>>);

TEST_CASE("a cost model of its own may tell, also behind what wraps it") {
  const planning_graph m = model_of({product()}, {});
  const cluster c("alone", gpu());
  const plan p = plan_of(mode::inference, 4, 1, {all_of(m, 4)});
  const auto memory_of = [&](const any_cost_model& cost) {
    CHECK(cost.tells_parts());
    return judge(p, m, c, cost).trace.memory_bound_s[0];
  };
  CHECK(memory_of(shared{0.25}) == 1);
  CHECK(memory_of(assume_si<plain_shared>{}) == 2);
  CHECK(memory_of(slow_down(shared{0.25}, {0.5})) == 2);
  CHECK(memory_of(slow_down(any_cost_model(shared{0.25}), {0.5})) == 2);
  CHECK(memory_of(remembered_cost(shared{0.25}, m, c)) == 1);
  CHECK(judge(p, m, c, shared{1}).evaluation.devices[0].energy.value() == near(4 * 40));
}

/// One whose parts are more or less than its time, or no numbers.
struct off_by {
  double more;
  [[nodiscard]] seconds time(const work& w, const device&) const { return seconds(w.batch); }
  [[nodiscard]] time_parts parts(const work& w, const device&) const { return {.cache = seconds(w.batch + more)}; }
};

TEST_CASE("a cost model whose parts do not add up to its time, or are negative, is refused") {
  const planning_graph m = model_of({product()}, {});
  const plan p = plan_of(mode::inference, 4, 1, {all_of(m, 4)});
  const cluster c("alone", gpu());
  const std::string who = R"(cost model: parts(layer 0 "a", forward, batch 4, device 0 "gpu") add up to )";
  const std::string wanted = " s; expected numbers >= 0 that add up to its time, 4 s";
  CHECK_THROWS_MATCHES(judge(p, m, c, off_by{2}), invalid_model, Catch::Message(who + "6" + wanted));
  CHECK_THROWS_MATCHES(judge(p, m, c, off_by{-1}), invalid_model, Catch::Message(who + "3" + wanted));
  CHECK_THROWS_MATCHES(judge(p, m, c, shared{1.5}), invalid_model, Catch::Message(who + "4" + wanted));
  CHECK_THROWS_MATCHES(judge(p, m, c, shared{-0.5}), invalid_model, Catch::Message(who + "4" + wanted));
  CHECK_THROWS_MATCHES(judge(p, m, c, shared{std::numeric_limits<double>::quiet_NaN()}), invalid_model,
                       Catch::Message(who + "nan" + wanted));
}

}  // namespace test_memory_bound
