// SPDX-License-Identifier: BSL-1.0
// Boundary prices: the cost of one layer following another on a device, in every sum over layers.
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>

#include "support/random_source.hpp"

using namespace hetplan;

namespace test_boundary {
namespace {

constexpr phase phases[] = {phase::forward, phase::backward_input, phase::backward_weight};
constexpr device_id one(0);

/// One second per layer and sample, and 0.25 s per boundary, whatever the batch.
struct quarter {
  [[nodiscard]] seconds time(const work& w, const device&) const { return 1_s * w.batch; }
  [[nodiscard]] seconds boundary(const layer&, const layer&, const work_kind&, const device&) const { return 0.25_s; }
};
/// Times that differ by both layers, their order, phase, batch, degree and device; counts questions about boundaries.
struct jagged {
  std::shared_ptr<int> asked = std::make_shared<int>(0);

  [[nodiscard]] static seconds drawn(std::initializer_list<int> from) {
    std::uint64_t seed = 0;
    for (const int part : from) seed = seed * 1009 + static_cast<std::uint64_t>(part);
    return seconds(test::random_source(seed).between(1e-3, 2e-2));
  }
  [[nodiscard]] seconds time(const work& w, const device& d) const {
    return drawn({w.layer.id.value, static_cast<int>(w.phase), static_cast<int>(w.batch), w.tensor_parallel, d.id.value});
  }
  [[nodiscard]] seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    ++*asked;
    return drawn({7, before.id.value, after.id.value, static_cast<int>(k.phase), static_cast<int>(k.batch), k.tensor_parallel, d.id.value});
  }
};
struct plain_quarter {
  [[nodiscard]] double time(const work& w, const device&) const { return w.batch; }
  [[nodiscard]] double boundary(const layer&, const layer&, const work_kind&, const device&) const { return 0.25; }
};
struct bad {
  double s;
  [[nodiscard]] seconds time(const work&, const device&) const { return 1_s; }
  [[nodiscard]] seconds boundary(const layer& l, const layer&, const work_kind&, const device&) const {
    return seconds(l.id.value == 1 ? s : 0);
  }
};
static_assert(check_cost_model<quarter>() && times_boundary<quarter> && !times_boundary<roofline> && !names_boundary<roofline>);
static_assert(times_boundary<assume_si<plain_quarter>> && !times_boundary<slowed<roofline>> && times_boundary<slowed<quarter>>);

planning_graph layers(int n) {
  planning_graph_builder b("m");
  for (int l = 0; l < n; ++l) b.add_layer({.name = "l" + std::to_string(l), .forward_flops = 1_GFLOP, .weight = 1_MB});
  for (int l = 1; l < n; ++l) b.add_edge(layer_id(l - 1), layer_id(l), 1_kB);
  return std::move(b).build();
}
cluster pair() {
  return {"pair",
          {{.name = "x", .memory = 4_GB, .compute = 1_TFLOP_per_s, .accelerators = 2, .interconnect = 1_GB_per_s},
           {.name = "y", .memory = 4_GB, .compute = 1_TFLOP_per_s}},
          shared_medium{1_Gbit_per_s}};
}

TEST_CASE("k layers on a device pay k - 1 boundaries in each phase, and a cut saves one") {
  const planning_graph m = layers(8);
  const cluster c = pair();
  const layer_sequence row = sequence_of(m);
  const any_cost_model cost = quarter{};
  const prefix_table t(m, row, c, cost, plain_memory{}, {}, 3);
  for (std::size_t first = 0; first < 8; ++first) {
    for (std::size_t last = first + 1; last <= 8; ++last) {
      const auto k = static_cast<double>(last - first);
      for (int share = 1; share <= 3; ++share) {
        const double each = k * share + (k - 1) * 0.25;
        const assignment a{one, share};
        stage s{.name = "s", .layers = row.layers_of(first, last), .devices = {a}};
        for (const phase what : phases) CHECK(stage_time_s(cost, m, s, a, c[one], what, token_pass{}) == each);
        CHECK(t.time(first, last, one, share).total_s == 3 * each);
        CHECK(t.time(first, last, one, share).backward_s == 2 * each);
        s.recompute = recomputation::stage;  // recomputation crosses the boundaries again
        CHECK(stage_time_s(cost, m, s, a, c[one], phase::backward_input, token_pass{}) == 2 * each);
      }
    }
  }
  CHECK(t.time(0, 8, one, 1).total_s - t.time(0, 3, one, 1).total_s - t.time(3, 8, one, 1).total_s == 3 * 0.25);
  CHECK(t.time(4, 4, one, 1).total_s == 0);
}

TEST_CASE("a table of any row prices each stage as its layers in that order, one by one") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  const cluster c = pair();
  const any_cost_model cost = jagged{};
  for (int round = 0; round < 40; ++round) {
    INFO("round " << round);
    const int size = random.integer(1, 9);
    planning_graph_builder b("islands");  // without edges, every order is valid
    for (int l = 0; l < size; ++l) b.add_layer({.name = std::to_string(l), .forward_flops = 1_GFLOP, .weight = 1_MB});
    const planning_graph m = std::move(b).build();
    std::vector<layer_id> order;
    for (const layer& l : m.layers()) order.push_back(l.id);
    random.shuffle(order);
    layer_sequence row;
    for (const layer_id l : order) {
      if (row.blocks.empty() || random.chance(0.6)) row.blocks.emplace_back();
      row.blocks.back().push_back(l);
    }
    const workload w{.mode = random.pick(std::vector{mode::training, mode::inference})};
    const prefix_table t(m, row, c, cost, plain_memory{}, w, 2);
    for (std::size_t first = 0; first < row.size(); ++first) {
      for (std::size_t last = first + 1; last <= row.size(); ++last) {
        const stage s{.name = "s", .layers = row.layers_of(first, last)};
        for (const device& d : c.devices()) {
          for (int share = 1; share <= 2; ++share) {
            const interval_time got = t.time(first, last, d.id, share);
            const assignment a{d.id, share, got.degree};
            const auto in = [&](phase what) { return stage_time_s(cost, m, s, a, d, what, token_passes(w, m)); };
            const double backward = w.mode == mode::training ? in(phase::backward_input) + in(phase::backward_weight) : 0;
            REQUIRE(got.total_s == Approx(in(phase::forward) + backward).epsilon(1e-12));
            REQUIRE(got.backward_s == Approx(backward).epsilon(1e-12).margin(1e-15));
          }
        }
      }
    }
  }
}

TEST_CASE("adapters pass boundaries on, and what is slow pays them slowly") {
  const planning_graph m = layers(3);
  const cluster c = pair();
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2)};
  const auto total_s = [&](const any_cost_model& cost) { return cost.total_s(m, all, {.batch = 2}, c[one], 0.5); };
  CHECK(total_s(quarter{}) == 7);
  CHECK(total_s(assume_si{plain_quarter{}}) == 7);
  CHECK(total_s(any_cost_model(remembered_cost(quarter{}, m, c))) == 7);
  CHECK(total_s(slow_down(quarter{}, {0.5, 1})) == 13.5);
  CHECK(total_s(slow_down(any_cost_model(quarter{}), {0.5, 1})) == 13.5);
  CHECK(total_s(slow_down(any_cost_model(remembered_cost(quarter{}, m, c)), {0.5, 1})) == 13.5);
  CHECK(any_cost_model(quarter{}).boundary(m[all[0]], m[all[1]], {}, c[one]) == 0.25_s);

  for (const any_cost_model& none : {any_cost_model(roofline{}), slow_down(any_cost_model(roofline{}), {1, 1}),
                                     any_cost_model(remembered_cost(roofline{}, m, c)), any_cost_model(assume_si{plain_quarter{}})}) {
    const bool priced = none.boundary(m[all[0]], m[all[1]], {}, c[one]) > 0_s;
    CHECK(none.times_boundaries() == priced);
    const prefix_table t(m, sequence_of(m), c, none, plain_memory{}, {}, 1);
    CHECK((t.totals(one, 1) == t.entries(one, 1)) != priced);  // without boundary prices, the same array
  }
}

TEST_CASE("remembered boundaries are, bit for bit, the model's, and the same row asks for each once") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  const planning_graph m = layers(12);
  const cluster c = pair();
  const jagged mine;
  const any_cost_model direct = jagged{}, remembered = remembered_cost(mine, m, c);
  std::vector<layer_id> order;
  for (const layer& l : m.layers()) order.push_back(l.id);
  for (int round = 0; round < 20; ++round) {
    for (int again = 0; again < 2; ++again) {
      const int before = *mine.asked;
      REQUIRE(remembered.total_s(m, order, {.batch = 2}, c[one], 0.1) == direct.total_s(m, order, {.batch = 2}, c[one], 0.1));
      if (round == 0 && again == 0) REQUIRE(*mine.asked == before + 11);
      if (again == 1) REQUIRE(*mine.asked == before);
    }
    random.shuffle(order);
  }
}

TEST_CASE("a boundary that is no time is refused with both layers, phase, batch and device, whoever adds up") {
  const planning_graph m = layers(3);
  const cluster c = pair();
  const std::vector<layer_id> all{layer_id(0), layer_id(1), layer_id(2)};
  for (const double s : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const auto said = [&](const std::string& batch) {
      return Catch::Message(R"(cost model: boundary(layer 1 "l1", layer 2 "l2", forward, batch )" + batch + R"(, device 0 "x") = )" +
                            to_text(s) + " s; expected finite >= 0");
    };
    const any_cost_model cost = bad{s};
    CHECK_THROWS_MATCHES(cost.total_s(m, all, {.batch = 2.5}, c[one]), invalid_model, said("2.5"));
    CHECK_THROWS_MATCHES(prefix_table(m, sequence_of(m), c, cost, plain_memory{}, {}, 1), invalid_model, said("1"));
    const any_cost_model remembered = remembered_cost(cost, m, c);
    for (int again = 0; again < 2; ++again) CHECK_THROWS_MATCHES(remembered.total_s(m, all, {}, c[one]), invalid_model, said("1"));
  }
}

}  // namespace
}  // namespace test_boundary
