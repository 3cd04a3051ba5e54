// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>

#include "support/random_source.hpp"

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

/// The chain a -> b -> c -> d with a skip a -> d; b and d share a tensor.
planning_graph skip_chain() {
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP, .activation = 1_B});
  b.add_layer(
      {.name = "b", .forward_flops = 2_GFLOP, .weight = 40_B, .weight_group = "tied", .activation = 2_B, .kv_bytes_per_token = 1_B});
  b.add_layer({.name = "c", .forward_flops = 4_GFLOP, .weight = 10_B, .activation = 4_B});
  b.add_layer(
      {.name = "d", .forward_flops = 8_GFLOP, .weight = 40_B, .weight_group = "tied", .activation = 8_B, .kv_bytes_per_token = 2_B});
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
constexpr device_id fast(0), slow(1);

/// An optimizer step of one second per byte of weight on the first device, two on the second.
struct with_step : roofline {
  [[nodiscard]] seconds optimizer_step(const layer& l, const device& d) const { return 1_s * l.weight.value() * (d.id.value + 1.0); }
};

}  // namespace

TEST_CASE("linear power charges idle for the whole run, active on top while busy, and every byte") {
  CHECK(linear_power{}.energy({.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B}, phone()) == 57_J);  // 20 + 32 + 3 + 2
  CHECK(linear_power{}.energy({.total = 10_s}, phone()) == 20_J);
  CHECK(linear_power{}.energy({}, phone()) == 0_J);
}

TEST_CASE("linear power charges memory-bound work by the power for it, which is the active one unless told") {
  const device_usage u{.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B, .memory_bound = 3_s};
  CHECK(linear_power{}.energy(u, phone()) == 57_J);
  device d = phone();
  d.power.memory = 10_W;
  CHECK(linear_power{}.energy(u, d) == 57_J);
  d.power.memory = 6_W;
  CHECK(linear_power{}.energy(u, d) == 45_J);  // 20 + 8 + 12 + 3 + 2
  CHECK(measured_power{}.energy(u, d) == 45_J);
  CHECK(measured_power{{{"phone", {{0, 2_W}, {1, 12_W}}}}}.energy(u, d) == 65_J);  // a table knows the busy share alone
  CHECK(slopes_of(linear_power{}, d) == slopes_of(linear_power{}, phone()));
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

TEST_CASE("a table of measured power whose shares do not ascend is refused") {
  const auto refused = [](double first, double second) {
    const measured_power m{{{"phone", {{first, 5_W}, {second, 9_W}}}}};
    static_cast<void>(m.energy({.total = 1_s}, phone()));
  };
  CHECK_THROWS_MATCHES(
      refused(0.9, 0.1), invalid_model,
      Catch::Message(R"(measured_power: the table of kind "phone" has a busy share of 0.1 behind one of 0.9; expected ascending shares)"));
  CHECK_THROWS_AS(refused(0.9, std::numeric_limits<double>::quiet_NaN()), invalid_model);
  CHECK_NOTHROW(refused(0.5, 0.5));
}

TEST_CASE("a kind without a table draws linear power") {
  const device_usage u{.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B};
  CHECK(measured_power{}.energy(u, phone()) == linear_power{}.energy(u, phone()));
  CHECK(measured_power{{{"phone", {}}}}.energy(u, phone()) == linear_power{}.energy(u, phone()));
  CHECK(measured_power{{{"laptop", {{0, 99_W}}}}}.energy(u, phone()) == linear_power{}.energy(u, phone()));
}

TEST_CASE("the slopes of linear power are its own numbers") {
  CHECK(slopes_of(linear_power{}, phone()) == energy_slopes{2, 8, 0.5, 0.25});
  const energy_slopes s = slopes_of(linear_power{}, phone());
  const device_usage u{.total = 10_s, .busy = 4_s, .sent = 6_B, .received = 8_B};
  CHECK(s.idle_W * 10 + s.busy_W * 4 + s.send_J_per_byte * 6 + s.receive_J_per_byte * 8 == linear_power{}.energy(u, phone()).value());
  CHECK(slopes_of(linear_power{}, device{.name = "d", .memory = 1_B}) == energy_slopes{});
}

TEST_CASE("the slopes of measured power join idle and busy by a straight line") {
  const measured_power hump{{{"phone", {{0, 4_W}, {0.5, 20_W}, {1, 9_W}}}}};
  CHECK(slopes_of(hump, phone()) == energy_slopes{4, 5, 0.5, 0.25});
}

TEST_CASE("a model that divides by the time of the run has slopes") {
  struct by_share {
    [[nodiscard]] joules energy(const device_usage& u, const device& d) const {
      const double share = u.busy / u.total, sent_per_s = (u.sent / u.total).value();
      return (d.power.idle + share * 6_W + sent_per_s * 1e-9 * 3_W) * u.total;
    }
  };
  CHECK(slopes_of(by_share{}, phone()) == energy_slopes{2, 6, 3e-9, 0});
}

TEST_CASE("a model whose energy falls as the usage grows, or is no number, has no slopes") {
  const measured_power falling{{{"phone", {{0, 4_W}, {1, 3_W}}}}};
  CHECK_THROWS_MATCHES(
      slopes_of(falling, phone()), invalid_model,
      Catch::Message(R"(energy model: energy(device "p") rises by -1 J per unit of one part of the usage; expected finite >= 0)"));
  device lazy = phone();
  lazy.power.active = 1_W;
  CHECK_THROWS_AS(slopes_of(linear_power{}, lazy), invalid_model);
  struct odd {
    double idle_J = 0, sent_J = 0, received_J = 0;
    [[nodiscard]] joules energy(const device_usage& u, const device&) const {
      return joules(idle_J * u.total.value() + sent_J * u.sent.value() + received_J * u.received.value());
    }
  };
  CHECK(slopes_of(odd{1, 2, 3}, phone()) == energy_slopes{1, 0, 2, 3});
  for (const odd& m : {odd{-1, 0, 0}, odd{0, -1, 0}, odd{0, 0, -1}, odd{std::numeric_limits<double>::quiet_NaN(), 0, 0},
                       odd{std::numeric_limits<double>::infinity(), 0, 0}}) {
    CHECK_THROWS_AS(slopes_of(m, phone()), invalid_model);
  }
}

TEST_CASE("training holds weights, gradients and optimizer of what is trained; inference the weights") {
  const plain_memory m;
  CHECK(m.state(dense(true), {.optimizer_factor = 2}) == 400_MB);
  CHECK(m.state(dense(true), {.optimizer_factor = 0}) == 200_MB);
  CHECK(m.state(dense(false), {.optimizer_factor = 2}) == 100_MB);
  CHECK(m.state(dense(true), {.mode = mode::inference}) == 100_MB);
  CHECK(m.state(dense(true), {.mode = mode::generation}) == 100_MB);
  CHECK(m.state(dense(true), {.optimizer = optimizer::adamw}) == 400_MB);
  CHECK(m.state(dense(true), {.optimizer = optimizer::adamw_amp}) == 450_MB);  // fp32: 18 bytes for 4
  CHECK(m.state(dense(false), {.optimizer = optimizer::adamw_amp}) == 100_MB);
  CHECK(m.state(dense(true), {.mode = mode::inference, .optimizer = optimizer::adamw_amp}) == 100_MB);
  CHECK(m.activations(dense(true), {}) == 3_MB);
  // Context, prompt and new tokens, at most the window.
  CHECK(m.cache(dense(true), {.mode = mode::generation, .context = 70, .tokens = 10, .prompt = 20}) == 500_B);
  layer narrow = dense(true);
  narrow.sequence.window = 30;
  CHECK(m.cache(narrow, {.mode = mode::generation, .context = 70, .tokens = 10, .prompt = 20}) == 150_B);
}

TEST_CASE("a framework takes a fraction more, and may keep its optimizer in another precision") {
  const framework_memory m{.fragmentation = 0.5, .optimizer_precision = 2};
  CHECK(m.state(dense(true), {.optimizer_factor = 2}).value() == Approx(1.5 * (100e6 + 100e6 * (1 + 4))));
  CHECK(m.state(dense(false), {.optimizer_factor = 2}) == 150_MB);
  CHECK(m.state(dense(true), {.mode = mode::inference}) == 150_MB);
  CHECK(m.activations(dense(true), {}) == 4.5_MB);
  layer cheap = dense(true);
  cheap.activation_for_weights = 1_MB;
  CHECK(m.activations_for_weights(cheap, {}) == 1.5_MB);
  CHECK(m.cache(dense(true), {.context = 90, .tokens = 10}) == 750_B);
}

TEST_CASE("a memory model's answer is finite and not negative, or it is refused by member and layer") {
  struct spoilt {
    double state_B = 0, activations_B = 0, cache_B = 0;
    [[nodiscard]] bytes state(const layer&, const workload&) const { return bytes(state_B); }
    [[nodiscard]] bytes activations(const layer&, const workload&) const { return bytes(activations_B); }
    [[nodiscard]] bytes cache(const layer&, const workload&) const { return bytes(cache_B); }
  };
  const auto table = [](const spoilt& m) {
    return prefix_table(skip_chain(), sequence_of(skip_chain()), pair(), roofline{}, m, {.mode = mode::generation}, 1);
  };
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
  const prefix_table t(g, sequence_of(g), pair(), roofline{}, plain_memory{}, {.optimizer_factor = 1}, 2);
  CHECK(t.size() == 4);
  CHECK(t.max_share() == 2);
  // F + B, and W where there are weights, of 2 samples: a 4, b 12, c 24, d 48 ms on the fast device.
  CHECK(t.time(0, 4, fast, 2).total_s == Approx(0.088));
  CHECK(t.time(0, 4, fast, 2).backward_s == Approx(0.058));
  CHECK(t.time(1, 3, fast, 2).total_s == Approx(0.036));
  CHECK(t.time(1, 3, slow, 2).total_s == Approx(0.072));
  CHECK(t.time(1, 3, slow, 2).backward_s == Approx(0.048));
  CHECK(t.time(2, 2, fast, 2).total_s == 0);
  CHECK(t.state_bytes(2, 3) == Approx(30));
  CHECK(t.activation_bytes(1, 4) == Approx(14));  // of one sample
  CHECK(t.cache_bytes(0, 4) == 0);
  CHECK(t.optimizer_s(0, 4, fast) == 0);

  const prefix_table forward(g, sequence_of(g), pair(), roofline{}, plain_memory{}, {.mode = mode::inference}, 1);
  CHECK(forward.time(0, 4, fast, 1).total_s == Approx(0.015));
  CHECK(forward.time(0, 4, fast, 1).backward_s == 0);
  CHECK(forward.state_bytes(2, 3) == Approx(10));
  const prefix_table tokens(g, sequence_of(g), pair(), roofline{}, plain_memory{}, {.mode = mode::generation, .context = 90, .tokens = 10},
                            3);
  CHECK(tokens.cache_bytes(0, 4) == Approx(300));  // of one sequence
  CHECK(tokens.cache_bytes(1, 2) == Approx(100));
}

TEST_CASE("a stage table knows every share of a microbatch, though batch and time are not proportional") {
  struct steps {  // two samples take as long as one, and phases differ
    [[nodiscard]] seconds time(const work& w, const device&) const {
      const double phases = w.phase == phase::forward ? 1 : w.phase == phase::backward_input ? 10 : 100;
      return 1_s * phases * std::ceil(w.batch / 2);
    }
  };
  const planning_graph g = skip_chain();
  const prefix_table t(g, sequence_of(g), pair(), steps{}, plain_memory{}, {}, 5);
  for (int share = 1; share <= 5; ++share) {
    const double halves = (share + 1) / 2;
    CHECK(t.time(1, 3, slow, share).total_s == 2 * 111 * halves);
    CHECK(t.time(1, 3, slow, share).backward_s == 2 * 110 * halves);
    CHECK(t.totals(slow, share)[4] == 4 * 111 * halves);
    CHECK(t.backwards(slow, share)[1] == 110 * halves);
  }
}

TEST_CASE("a stage runs at the degree of tensor parallelism with the least time, the smaller on a tie") {
  // One layer of 4 GFLOP, whose accelerators gather its output over 1 GB/s.
  const auto model = [](bytes gathered) {
    planning_graph_builder b("m");
    b.add_layer({.name = "a", .forward_flops = 4_GFLOP, .backward_input_flops = 0_FLOP});
    b.add_layer({.name = "b", .forward_flops = 0_FLOP});
    b.add_edge("a", "b", gathered);
    return std::move(b).build();
  };
  const auto time = [&](bytes gathered, int accelerators) {
    const cluster one("one",
                      {{.name = "d", .memory = 1_GB, .compute = 1_TFLOP_per_s, .accelerators = accelerators, .interconnect = 1_GB_per_s}},
                      shared_medium{1_MB_per_s});
    const planning_graph g = model(gathered);
    const prefix_table t(g, sequence_of(g), one, roofline{}, plain_memory{}, {.mode = mode::inference}, 1);
    CHECK(t.degrees(fast) == accelerators);
    return t.time(0, 2, fast, 1);
  };
  CHECK(time(1_MB, 4).degree == 4);  // 1 + 1.5 ms; 3 ms at degree 2
  CHECK(time(1_MB, 4).total_s == Approx(0.0025));
  CHECK(time(4_MB, 4).degree == 1);  // 4 ms; at least 6 ms at higher degrees
  CHECK(time(4_MB, 4).total_s == Approx(0.004));
  CHECK(time(2_MB, 2).degree == 1);  // 4 ms either way
  CHECK(time(1_MB, 1).degree == 1);

  // Layer a is faster at degree 1, b at degree 2: the whole stage decides, and its backward follows.
  planning_graph_builder b("m");
  b.add_layer({.name = "a", .forward_flops = 4_GFLOP});
  b.add_layer({.name = "b", .forward_flops = 10_GFLOP});
  b.add_layer({.name = "c", .forward_flops = 0_FLOP});
  b.add_edge("a", "b", 6_MB);
  b.add_edge("b", "c", 0_B);
  const planning_graph g = std::move(b).build();
  const cluster two("two", {{.name = "d", .memory = 1_GB, .compute = 1_TFLOP_per_s, .accelerators = 2, .interconnect = 1_GB_per_s}},
                    shared_medium{1_MB_per_s});
  const prefix_table t(g, sequence_of(g), two, roofline{}, plain_memory{}, {}, 1);
  CHECK(t.time(0, 1, fast, 1).degree == 1);
  CHECK(t.time(1, 2, fast, 1).degree == 2);
  CHECK(t.time(0, 2, fast, 1).degree == 2);  // 2 (2 + 6 + 5) ms against 2 (4 + 10)
  CHECK(t.time(0, 2, fast, 1).total_s == Approx(0.026));
  CHECK(t.time(0, 2, fast, 1).backward_s == Approx(0.013));
  CHECK(t.totals(fast, 1, 1)[2] == Approx(0.028));
}

TEST_CASE("a device without interconnect, or one that a layer was profiled on, runs at degree 1") {
  const auto degrees = [](bool profiled, bool joined) {
    planning_graph_builder b("m");
    layer_spec a{.name = "a", .forward_flops = 4_GFLOP};
    if (profiled) a.profiles.push_back({"box", {1}, {0.5}, {0.5}});
    b.add_layer(a);
    const planning_graph g = std::move(b).build();
    device d{.name = "d", .kind = "box", .memory = 1_GB, .compute = 1_TFLOP_per_s, .accelerators = 2};
    if (joined) d.interconnect = 1_GB_per_s;
    return prefix_table(g, sequence_of(g), cluster("one", {d}, shared_medium{1_MB_per_s}), roofline{}, plain_memory{}, {}, 1).degrees(fast);
  };
  CHECK(degrees(false, true) == 2);
  CHECK(degrees(true, true) == 1);
  CHECK(degrees(false, false) == 1);
}

TEST_CASE("a stage table counts a shared tensor once per stage that holds it") {
  const planning_graph g = skip_chain();
  const prefix_table t(g, sequence_of(g), pair(), roofline{}, plain_memory{}, {.mode = mode::inference}, 1);
  CHECK(t.state_bytes(0, 4) == Approx(50));
  CHECK(t.state_bytes(1, 4) == Approx(50));
  CHECK(t.state_bytes(0, 3) == Approx(50));
  CHECK(t.state_bytes(2, 4) == Approx(50));
  CHECK(t.state_bytes(3, 4) == Approx(40));
}

TEST_CASE("trainable bytes of a stage count a shared tensor once; tied bytes are those that a stage behind it holds too") {
  const planning_graph g = skip_chain();
  const prefix_table t(g, sequence_of(g), pair(), roofline{}, plain_memory{}, {}, 1);
  CHECK(t.trainable_bytes(0, 4) == 50);
  CHECK(t.trainable_bytes(0, 1) == 0);
  CHECK(t.trainable_bytes(1, 3) == 50);
  CHECK(t.trainable_bytes(3, 4) == 40);
  CHECK(t.tied_bytes(0, 4) == 0);  // both holders inside
  CHECK(t.tied_bytes(0, 3) == 40);
  CHECK(t.tied_bytes(1, 2) == 40);
  CHECK(t.tied_bytes(0, 1) == 0);
  CHECK(t.tied_bytes(2, 3) == 0);
  CHECK(t.tied_bytes(3, 4) == 0);  // no later holder

  planning_graph_builder b("frozen");
  for (const char* name : {"a", "b"}) {
    b.add_layer({.name = name, .forward_flops = 1_FLOP, .weight = 8_B, .trainable = false, .weight_group = "tied"});
  }
  const planning_graph frozen = std::move(b).build();
  const prefix_table still(frozen, sequence_of(frozen), pair(), roofline{}, plain_memory{}, {}, 1);
  CHECK(still.state_bytes(0, 2) == 8);
  CHECK(still.trainable_bytes(0, 2) == 0);
  CHECK(still.tied_bytes(0, 1) == 0);
}

TEST_CASE("the optimizer steps once for each distinct trainable tensor of a stage") {
  const planning_graph g = skip_chain();
  const prefix_table t(g, sequence_of(g), pair(), with_step{}, plain_memory{}, {}, 1);
  CHECK(t.optimizer_s(0, 4, fast) == 50);
  CHECK(t.optimizer_s(0, 4, slow) == 100);
  CHECK(t.optimizer_s(1, 2, slow) == 80);
  CHECK(t.optimizer_s(2, 4, fast) == 50);
  CHECK(t.optimizer_s(0, 1, fast) == 0);
  const prefix_table forward(g, sequence_of(g), pair(), with_step{}, plain_memory{}, {.mode = mode::inference}, 1);
  CHECK(forward.optimizer_s(0, 4, slow) == 0);
}

TEST_CASE("blocks of several layers are sums of their layers") {
  const planning_graph g = skip_chain();
  const layer_sequence halves{{{layer_id(0)}, {layer_id(1), layer_id(2), layer_id(3)}}};
  const prefix_table t(g, halves, pair(), with_step{}, plain_memory{}, {.optimizer_factor = 1}, 2);
  CHECK(t.size() == 2);
  CHECK(t.time(0, 2, fast, 2).total_s == Approx(0.088));
  CHECK(t.time(1, 2, fast, 2).total_s == Approx(0.084));
  CHECK(t.time(1, 2, fast, 2).backward_s == Approx(0.056));
  CHECK(t.state_bytes(1, 2) == Approx(150));  // b and d hold one tensor
  CHECK(t.trainable_bytes(1, 2) == 50);
  CHECK(t.tied_bytes(0, 1) == 0);
  CHECK(t.optimizer_s(1, 2, slow) == 100);
  CHECK(t.activation_bytes(1, 2) == 14);
}

TEST_CASE("every stage of random blocks costs what its layers cost one by one") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  int degree_two = 0;
  for (int round = 0; round < 60; ++round) {
    INFO("round " << round);
    planning_graph_builder b("random");
    const int size = random.integer(1, 9);
    for (int i = 0; i < size; ++i) {
      layer_spec l{.name = std::to_string(i),
                   .forward_flops = flops(1e9 * random.integer(0, 9)),
                   .weight = bytes(4 * random.integer(0, 9)),
                   .activation = bytes(random.integer(0, 9)),
                   .kv_bytes_per_token = bytes(random.integer(0, 9))};
      l.trainable = random.chance(0.8);
      if (random.chance(0.5)) {
        l.weight_group = random.chance(0.5) ? "tied" : "frozen";
        l.weight = 16_B;
        l.trainable = l.weight_group == "tied";
      }
      b.add_layer(l);
      for (int u = 0; u < i; ++u) {
        if (random.chance(0.4)) b.add_edge(layer_id(u), layer_id(i), bytes(1e6 * random.integer(0, 3)));
      }
    }
    const planning_graph g = std::move(b).build();
    layer_sequence s;
    for (const layer& l : g.layers()) {
      if (s.blocks.empty() || random.chance(0.6)) s.blocks.emplace_back();
      s.blocks.back().push_back(l.id);
    }
    const cluster c(
        "c",
        {{.name = "x", .memory = 1_GB, .compute = 1_TFLOP_per_s, .half_batch = 0.5, .accelerators = 2, .interconnect = 1_GB_per_s},
         {.name = "y", .memory = 1_GB, .compute = 0.5_TFLOP_per_s, .launch = 1_ms}},
        shared_medium{1_MB_per_s});
    workload w{.mode = random.pick(std::vector{mode::training, mode::inference, mode::generation}), .optimizer_factor = 2, .context = 10};
    const prefix_table t(g, s, c, with_step{}, plain_memory{}, w, 3);
    for (std::size_t first = 0; first < s.size(); ++first) {
      for (std::size_t last = first + 1; last <= s.size(); ++last) {
        const stage mine{.layers = s.layers_of(first, last)};
        for (const device& d : c.devices()) {
          for (int share = 1; share <= 3; ++share) {
            interval_time best;
            for (int degree = 1; degree <= d.accelerators; ++degree) {
              const assignment a{d.id, share, degree};
              const auto in = [&](phase what) { return stage_time_s(with_step{}, g, mine, a, d, what, token_passes(w, g)); };
              const double backward = w.mode == mode::training ? in(phase::backward_input) + in(phase::backward_weight) : 0;
              const double total = in(phase::forward) + backward;
              if (degree == 1 || total < best.total_s * (1 - 1e-9)) best = {.total_s = total, .backward_s = backward, .degree = degree};
            }
            const interval_time found = t.time(first, last, d.id, share);
            REQUIRE(found.total_s == Approx(best.total_s).margin(1e-12));
            if (found.degree != best.degree) continue;  // a tie but for rounding
            REQUIRE(found.backward_s == Approx(best.backward_s).margin(1e-12));
            degree_two += found.degree - 1;
          }
          double step = 0;
          for_each_tensor(g, mine, [&](const layer& l) {
            if (l.trainable_weight().value() > 0) step += with_step{}.optimizer_step(l, d).value();
          });
          REQUIRE(t.optimizer_s(first, last, d.id) == (w.mode == mode::training ? step : 0));
        }
        const assignment one{device_id(0), 1};
        REQUIRE(t.state_bytes(first, last) + t.cache_bytes(first, last) == stage_static_bytes(plain_memory{}, g, mine, one, w, 1));
        REQUIRE(t.activation_bytes(first, last) == stage_share_memory(plain_memory{}, g, mine, one, w, 0).forward);
        REQUIRE(t.trainable_bytes(first, last) == trainable_bytes(g, mine));
        const auto held = [&](std::size_t from, std::size_t to) {
          for (std::size_t k = from; k < to; ++k) {
            for (const layer_id l : s.blocks[k]) {
              if (g[l].weight_group >= 0 && g[l].trainable) return true;
            }
          }
          return false;
        };
        REQUIRE(t.tied_bytes(first, last) == (held(first, last) && held(last, s.size()) ? 16 : 0));
      }
    }
  }
  CHECK(degree_two > 50);
}

TEST_CASE("shares of many samples are told apart by six bits, the next larger stands for those between") {
  for (int share = 1; share <= 100'000; share += share < 300 ? 1 : 97) {
    const std::size_t which = prefix_table::which_share(share);
    if (share <= 64) CHECK(which + 1 == static_cast<std::size_t>(share));
    CHECK(prefix_table::which_share(share + 1) >= which);
    CHECK(prefix_table::which_share(share + 1) <= which + 1);
  }
  planning_graph_builder b("one");
  b.add_layer({.name = "l", .forward_flops = 1_GFLOP});
  const planning_graph model = std::move(b).build();
  const cluster c("one", {{.name = "d", .memory = 1_GB, .compute = 1_TFLOP_per_s}}, shared_medium{1_Gbit_per_s, 0_s});
  const prefix_table t(model, sequence_of(model), c, roofline{}, plain_memory{}, {.mode = mode::inference}, 1'000'000);
  CHECK(t.distinct_shares() < 600);
  int before = 0;
  for (std::size_t i = 0; i < t.distinct_shares(); ++i) {
    const int samples = t.samples_of(i);
    REQUIRE(samples > before);
    REQUIRE(prefix_table::which_share(samples) == i);
    REQUIRE(prefix_table::which_share(before + 1) == i);
    REQUIRE(samples <= std::max(before + 1, static_cast<int>(1.032 * (before + 1))));
    CHECK(t.time(0, 1, device_id(0), before + 1).total_s == Approx(1e-3 * samples));
    before = samples;
  }
  CHECK(before == 1'000'000);
}
