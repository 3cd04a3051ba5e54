// SPDX-License-Identifier: BSL-1.0
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/roofline.hpp>
#include <hetplan/cost/stage_table.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>

using namespace hetplan;

namespace {

device phone() {
  return {.name = "p", .kind = "phone", .memory = 8_GB, .compute = 1_TFLOP_per_s, .power = {2_W, 10_W, 0.5_J_per_B, 0.25_J_per_B}};
}

layer dense(bool trainable) {
  layer l;
  l.name = "d";
  l.weight = 100_MB;
  l.trainable = trainable;
  l.activation = 3_MB;
  l.kv_bytes_per_token = 5_B;
  return l;
}

/// a -> b -> c -> d with a skip a -> d; b and d share a tensor.
planning_graph skip_chain() {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .activation = 1_B});
  b.add_layer({.name = "b", .forward_flops = 2_GFLOP, .weight = 40_B, .weight_group = "tied", .activation = 2_B, .kv_bytes_per_token = 1_B});
  b.add_layer({.name = "c", .forward_flops = 4_GFLOP, .weight = 10_B, .activation = 4_B});
  b.add_layer({.name = "d", .forward_flops = 8_GFLOP, .weight = 40_B, .weight_group = "tied", .activation = 8_B, .kv_bytes_per_token = 2_B});
  b.add_edge("a", "b", 10_B);
  b.add_edge("b", "c", 20_B, 5_B);
  b.add_edge("c", "d", 30_B, 0_B);
  b.add_edge("a", "d", 7_B, 3_B);
  return std::move(b).build();
}
cluster pair() {
  return {"pair",
          {{.name = "fast", .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "slow", .memory = 1_GB, .compute = 0.5_TFLOP_per_s}},
          shared_medium{1_MB_per_s}};
}

}  // namespace

TEST_CASE("linear power charges idle for the whole run, active on top while busy, and every byte") {
  CHECK(linear_power{}.energy({.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B}, phone()) == 57_J);  // 20 + 32 + 3 + 2
  CHECK(linear_power{}.energy({.total = 10_s}, phone()) == 20_J);
  CHECK(linear_power{}.energy({}, phone()) == 0_J);
}

TEST_CASE("measured power is linear between its points, constant outside, and keeps the radio's energy") {
  const measured_power m{{{"phone", {{0.2, 4_W}, {0.6, 8_W}, {0.8, 20_W}}}}};
  const auto watts_at = [&](double share) { return m.energy({.total = 10_s, .busy = 10_s * share}, phone()).value() / 10; };
  CHECK(watts_at(0) == Approx(4));
  CHECK(watts_at(0.2) == Approx(4));
  CHECK(watts_at(0.3) == Approx(5));
  CHECK(watts_at(0.6) == Approx(8));
  CHECK(watts_at(0.7) == Approx(14));
  CHECK(watts_at(1) == Approx(20));
  CHECK(m.energy({.total = 1_s, .sent = 6_B, .received = 8_B}, phone()).value() == Approx(4 + 3 + 2));
  CHECK(m.energy({}, phone()) == 0_J);
  const measured_power one{{{"phone", {{0.5, 3_W}}}}};
  CHECK(one.energy({.total = 2_s, .busy = 2_s}, phone()) == 6_J);
}

TEST_CASE("a kind without a table draws linear power") {
  const device_usage u{.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B};
  CHECK(measured_power{}.energy(u, phone()) == linear_power{}.energy(u, phone()));
  CHECK(measured_power{{{"phone", {}}}}.energy(u, phone()) == linear_power{}.energy(u, phone()));
  CHECK(measured_power{{{"laptop", {{0, 99_W}}}}}.energy(u, phone()) == linear_power{}.energy(u, phone()));
}

TEST_CASE("training holds weights, gradients and optimizer of what is trained; inference the weights") {
  const plain_memory m;
  CHECK(m.state(dense(true), {.optimizer_factor = 2}) == 400_MB);
  CHECK(m.state(dense(true), {.optimizer_factor = 0}) == 200_MB);
  CHECK(m.state(dense(false), {.optimizer_factor = 2}) == 100_MB);
  CHECK(m.state(dense(true), {.mode = mode::inference}) == 100_MB);
  CHECK(m.state(dense(true), {.mode = mode::generation}) == 100_MB);
  CHECK(m.activations(dense(true), {}) == 3_MB);
  CHECK(m.cache(dense(true), {.mode = mode::generation, .context = 100}) == 500_B);
}

TEST_CASE("a framework takes a fraction more, and may keep its optimizer in another precision") {
  const framework_memory m{.fragmentation = 0.5, .optimizer_precision = 2};
  CHECK(m.state(dense(true), {.optimizer_factor = 2}).value() == Approx(1.5 * (100e6 + 100e6 * (1 + 4))));
  CHECK(m.state(dense(false), {.optimizer_factor = 2}) == 150_MB);
  CHECK(m.state(dense(true), {.mode = mode::inference}) == 150_MB);
  CHECK(m.activations(dense(true), {}) == 4.5_MB);
  CHECK(m.cache(dense(true), {.context = 100}) == 750_B);
}

TEST_CASE("a memory model's answer is finite and not negative, or it is refused by member and layer") {
  struct spoilt {
    double state_B = 0, activations_B = 0, cache_B = 0;
    [[nodiscard]] bytes state(const layer&, const workload&) const { return bytes(state_B); }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return bytes(activations_B); }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return bytes(cache_B); }
  };
  const auto table = [](const spoilt& m) { return stage_table(skip_chain(), pair(), roofline{}, m, {.mode = mode::generation}, 1); };
  CHECK_NOTHROW(table({}));
  const double nowhere = std::numeric_limits<double>::quiet_NaN(), endless = std::numeric_limits<double>::infinity();
  CHECK_THROWS_MATCHES(table({.state_B = nowhere}), invalid_model,
                       Catch::Message(R"(memory model: state(layer 0 "a") = nan B; expected finite >= 0)"));
  CHECK_THROWS_MATCHES(table({.activations_B = -1}), invalid_model,
                       Catch::Message(R"(memory model: activations(layer 0 "a") = -1 B; expected finite >= 0)"));
  CHECK_THROWS_MATCHES(table({.cache_B = endless}), invalid_model,
                       Catch::Message(R"(memory model: cache(layer 0 "a") = inf B; expected finite >= 0)"));
}

TEST_CASE("a stage table sums times and memory of consecutive layers") {
  const planning_graph g = skip_chain();
  const stage_table t(g, pair(), roofline{}, plain_memory{}, {.optimizer_factor = 1}, 2);
  CHECK(t.layers() == 4);
  // F + B, and W where there are weights, of 2 samples: a 4, b 12, c 24, d 48 ms on the fast device.
  CHECK(t.time_s(0, 4, 0) == Approx(0.088));
  CHECK(t.time_s(1, 3, 0) == Approx(0.036));
  CHECK(t.time_s(1, 3, 1) == Approx(0.072));
  CHECK(t.time_s(2, 2, 0) == 0);
  CHECK(t.state_bytes(2, 3) == Approx(30));  // 10 (1 + 1 + 1)
  CHECK(t.activation_bytes(1, 4) == Approx(2 * 14));
  CHECK(t.cache_bytes(0, 4) == 0);

  const stage_table forward(g, pair(), roofline{}, plain_memory{}, {.mode = mode::inference}, 1);
  CHECK(forward.time_s(0, 4, 0) == Approx(0.015));
  CHECK(forward.state_bytes(2, 3) == Approx(10));
  const stage_table tokens(g, pair(), roofline{}, plain_memory{}, {.mode = mode::generation, .context = 100}, 3);
  CHECK(tokens.cache_bytes(0, 4) == Approx(900));
  CHECK(tokens.cache_bytes(1, 2) == Approx(300));
}

TEST_CASE("a stage table counts a shared tensor once per stage that holds it") {
  const stage_table t(skip_chain(), pair(), roofline{}, plain_memory{}, {.mode = mode::inference}, 1);
  CHECK(t.state_bytes(0, 4) == Approx(50));
  CHECK(t.state_bytes(1, 4) == Approx(50));
  CHECK(t.state_bytes(0, 3) == Approx(50));
  CHECK(t.state_bytes(2, 4) == Approx(50));
  CHECK(t.state_bytes(3, 4) == Approx(40));
}

TEST_CASE("a tensor crosses every boundary up to its last reader once, with what the readers behind it take") {
  const stage_table forward(skip_chain(), pair(), roofline{}, plain_memory{}, {.mode = mode::inference}, 2);
  CHECK(forward.cut_bytes(0) == 0);
  CHECK(forward.cut_bytes(1) == Approx(2 * 10));  // a's tensor goes to b and d: the larger of 10 and 7
  CHECK(forward.cut_bytes(2) == Approx(2 * (20 + 7)));
  CHECK(forward.cut_bytes(3) == Approx(2 * (30 + 7)));
  CHECK(forward.cut_bytes(4) == 0);
  const stage_table training(skip_chain(), pair(), roofline{}, plain_memory{}, {}, 1);
  CHECK(training.cut_bytes(1) == Approx(10 + 10));
  CHECK(training.cut_bytes(2) == Approx(27 + 5 + 3));
  CHECK(training.cut_bytes(3) == Approx(37 + 0 + 3));
}
