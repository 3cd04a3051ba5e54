// SPDX-License-Identifier: BSL-1.0
// The search against brute force on unusual models and networks: tied tensors, optimizer steps, missing routes, several sources and sinks,
// layers without cost.
#include <catch2/catch.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/partition/two_substate_dp.hpp>

#include "support/search_instance.hpp"

using namespace hetplan;
using namespace hetplan::partition;

namespace {

/// Roofline model with an optimizer step for each tensor.
struct steps_too : roofline {
  seconds optimizer_step(const layer& l, const device& d) const { return seconds(l.weight.value() * 1e3 / d.compute.value()); }
};

/// Cost model with a random time for each argument: not monotone in the batch, and without rates.
struct jagged {
  seconds time(const work& w, const device& d) const {
    test::random_source random(static_cast<std::uint64_t>(w.layer.id.value) * 4 + static_cast<std::uint64_t>(w.phase) +
                               1000 * static_cast<std::uint64_t>(w.batch) + 100000 * static_cast<std::uint64_t>(w.tensor_parallel) +
                               static_cast<std::uint64_t>(d.compute.value()));
    return random.chance(0.2) ? seconds() : seconds(random.between(1e-3, 2e-2));
  }
};

/// Roofline model with a random boundary price for each ordered pair of layers, so that some cuts are cheaper than others.
struct boundaries_too : roofline {
  seconds boundary(const layer& before, const layer& after, const work_kind& k, const device& d) const {
    test::random_source random(static_cast<std::uint64_t>(before.id.value) * 100 + static_cast<std::uint64_t>(after.id.value));
    return seconds((random.chance(0.3) ? 0 : random.between(0, 8e9)) * k.batch * (k.phase == phase::forward ? 1 : 0.5) / d.compute.value());
  }
};

struct oddities {
  bool tied = false, islands = false, joined = true, free_layers = false, merged = false;
};

planning_graph odd_model(test::random_source& random, int layers, const oddities& odd) {
  planning_graph_builder b("odd");
  const bytes shared(random.between(1e6, 4e7));
  for (int i = 0; i < layers; ++i) {
    layer_spec l{.name = "l" + std::to_string(i),
                 .forward_flops = flops(random.between(1e9, 8e9)),
                 .weight = bytes(random.between(0, 4e7)),
                 .activation = bytes(random.between(1e5, 4e6)),
                 .kv_bytes_per_token = bytes(random.between(0, 1e4))};
    if (odd.tied && random.chance(0.4)) {
      l.weight = shared;
      l.weight_group = random.chance(0.7) ? "one" : "other";
    } else {
      l.trainable = !random.chance(0.2);
    }
    if (odd.free_layers && random.chance(0.4)) {
      l.forward_flops = l.backward_input_flops = l.backward_weight_flops = flops();
      if (l.weight_group.empty()) l.weight = {};
    }
    b.add_layer(l);
  }
  for (int i = 1; i < layers; ++i) {
    for (int j = 0; j < i; ++j) {
      const double chance = i - j == 1 ? (odd.joined ? 1 : 0.5) : 0.25;
      if (!random.chance(chance)) continue;
      const bytes forward = random.chance(0.1) ? bytes() : bytes(random.between(1e4, 5e6));
      b.add_edge(layer_id(j), layer_id(i), forward, random.chance(0.3) ? bytes() : bytes(random.between(1e4, 5e6)));
    }
  }
  return std::move(b).build();
}

/// Returns a cluster where some ordered pairs have no route and some share a resource.
cluster islands(test::random_source& random, const cluster& like) {
  route_table t;
  t.listed.push_back({"air", bytes_per_second(random.between(5e6, 3e8))});
  std::vector<device> devices(like.devices().begin(), like.devices().end());
  for (const device& a : devices) {
    for (const device& b : devices) {
      if (a.id == b.id || random.chance(0.3)) continue;
      if (random.chance(0.4)) {
        t.rules.push_back({a.name, b.name, {seconds(1e-3), {{resource_id(0), 1}}}});
        continue;
      }
      t.listed.push_back({a.name + ">" + b.name, bytes_per_second(random.between(5e6, 3e8))});
      t.rules.push_back(
          {a.name, b.name, {seconds(random.between(0, 2e-3)), {{resource_id(t.listed.size() - 1), random.chance(0.5) ? 1.0 : 1.5}}}});
    }
  }
  return cluster("islands", std::move(devices), t);
}

test::search_instance odd_instance(std::uint64_t seed, const oddities& odd, bool tight) {
  test::search_instance i = test::random_search_instance(seed, {.most_layers = 5, .most_devices = 4, .tight = tight});
  test::random_source random(seed * 104729 + 5);
  planning_graph model = odd_model(random, random.integer(2, odd.merged ? 9 : 6), odd);
  cluster c = test::detail::random_cluster(random, random.integer(1, 3), model, {.tight = tight});
  if (odd.islands) c = islands(random, c);
  layer_sequence sequence = odd.merged ? decompose::serial(model, coarsen::merge_small(model, {.share = 0.35})) : decompose::serial(model);
  return {std::move(model), std::move(sequence), std::move(c), i.blank, "odd_instance(" + std::to_string(seed) + ")"};
}

template <class Cost, class Objective>
bool compare(const test::search_instance& i, const Cost& cost, const Objective& o, warmup_rule rule) {
  INFO(i.what);
  const search_tables t(i.model, i.sequence, i.cluster, cost, plain_memory{}, linear_power{}, i.blank.workload, i.blank.microbatch_size);
  // Samples are allotted class by class. If a larger share may be faster, this is not the one-by-one order of the brute force.
  if (std::same_as<Cost, jagged> && t.classes.size() < i.cluster.size()) return false;
  space_options space;
  space.warmup = rule;
  for (const auto& members : t.classes) space.device_order.insert(space.device_order.end(), members.begin(), members.end());
  const auto best =
      brute_force(i.sequence, i.model, i.cluster, cost, plain_memory{}, linear_power{}, i.blank, space, o, dominant_step{}, 1);
  for (const bool prune : {true, false}) {
    const search_options options{.plans = 2, .warmup = rule, .prune = prune, .coarse_boundaries = 2};
    const search_result found = two_substate_dp(t, test::any_order(t, i.blank), i.blank, o, dominance{}, options);
    REQUIRE(found.plans.empty() == best.empty());
    REQUIRE((found.status.result == outcome::none_found) == best.empty());
    for (const found_plan& f : found.plans) {
      const evaluation e = estimate(f.plan, i.model, i.cluster, cost);
      REQUIRE(f.estimate.response().value() == Approx(e.response().value()).epsilon(1e-9));
      REQUIRE(f.estimate.energy().value() == Approx(e.energy().value()).epsilon(1e-9));
      REQUIRE_FALSE(find_broken_limit(e, i.cluster));
    }
    // The search scores the response, which differs from latency in generation.
    if (!best.empty()) REQUIRE(score(o, found.plans.front().estimate) == Approx(best.front().score).epsilon(1e-9));
  }
  return !best.empty();
}

template <class Cost>
int compare_all(std::uint64_t offset, int count, const oddities& odd, const Cost& cost) {
  int feasible = 0;
  for (std::uint64_t seed = test::first_seed() + offset; seed < test::first_seed() + offset + static_cast<std::uint64_t>(count); ++seed) {
    const test::search_instance i = odd_instance(seed, odd, seed % 2 == 0);
    const warmup_rule rule = warmup_rules[seed % 3];
    switch (seed % 4) {
      case 0: feasible += compare(i, cost, minimize_energy{}, rule) ? 1 : 0; break;
      case 1: feasible += compare(i, cost, keep_qoe{seconds(0.05), 20}, rule) ? 1 : 0; break;
      default: feasible += compare(i, cost, minimize_latency{}, rule) ? 1 : 0; break;
    }
  }
  return feasible;
}

}  // namespace

TEST_CASE("where boundaries between layers cost something, the search has the best plan, its time and its energy: chains and skips") {
  REQUIRE(compare_all(900000, 400, {}, boundaries_too{}) > 150);
}

TEST_CASE("and on branches, whose rows are in another order than the layers' numbers, and on merged blocks") {
  REQUIRE(compare_all(910000, 300, {.islands = true, .joined = false}, boundaries_too{}) > 60);
  REQUIRE(compare_all(920000, 200, {.merged = true}, boundaries_too{}) > 80);
}

TEST_CASE("layers that share a tensor are charged as the estimate charges them") {
  REQUIRE(compare_all(200000, 500, {.tied = true}, roofline{}) > 200);
}

TEST_CASE("the optimizer's step is charged as the estimate charges it") {
  REQUIRE(compare_all(210000, 500, {.tied = true}, steps_too{}) > 200);
}

TEST_CASE("no plan uses a route that is missing, and the best that does not is found", "[unsanitized]") {
  REQUIRE(compare_all(220000, 800, {.islands = true}, roofline{}) > 300);
  REQUIRE(compare_all(230000, 400, {.tied = true, .islands = true, .joined = false}, steps_too{}) > 150);
}

TEST_CASE("graphs with several sources, sinks and parts are searched as they are") {
  REQUIRE(compare_all(240000, 500, {.joined = false}, roofline{}) > 200);
}

TEST_CASE("layers that cost nothing change nothing") {
  REQUIRE(compare_all(250000, 500, {.joined = false, .free_layers = true}, roofline{}) > 200);
}

TEST_CASE("blocks of several layers are searched as blocks", "[unsanitized]") {
  REQUIRE(compare_all(260000, 400, {.merged = true}, roofline{}) > 150);
  REQUIRE(compare_all(270000, 400, {.tied = true, .islands = true, .joined = false, .merged = true}, steps_too{}) > 150);
}

TEST_CASE("times that do not grow with the batch break no bound") {
  REQUIRE(compare_all(280000, 600, {}, jagged{}) > 150);
  REQUIRE(compare_all(290000, 400, {.tied = true, .joined = false}, jagged{}) > 100);
}

TEST_CASE("a chain may begin with layers that cost nothing") {
  for (const int free : {1, 2, 5, 8}) {
    for (const int layers : {3, 5, 8, 12}) {
      if (free >= layers) continue;
      INFO(free << " of " << layers << " layers are free");
      planning_graph_builder b("begins for free");
      for (int l = 0; l < layers; ++l) {
        b.add_layer({.name = "l" + std::to_string(l), .forward_flops = flops(l < free ? 0 : 1e9)});
        if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), 1_MB);
      }
      const planning_graph model = std::move(b).build();
      const layer_sequence sequence = decompose::serial(model);
      std::vector<device> devices(2, {.name = "a", .memory = 1_GB, .compute = 1_TFLOP_per_s});
      devices[1].name = "b";
      const cluster c("two", devices, shared_medium{1_MB_per_s, 1_ms});
      plan blank;
      blank.microbatch_size = blank.microbatches = 2;
      const search_tables t(model, sequence, c, roofline{}, plain_memory{}, linear_power{}, blank.workload, 2);
      // The search terminates, with the same score with and without coarse runs.
      const device_space space = test::any_order(t, blank);
      const search_result found = two_substate_dp(t, space, blank, minimize_latency{}, dominance{}, {.coarse_boundaries = 2});
      const search_result bare = two_substate_dp(t, space, blank, minimize_latency{}, dominance{}, {.coarse_boundaries = 0});
      REQUIRE_FALSE(bare.plans.empty());
      REQUIRE(found.plans.front().score == Approx(bare.plans.front().score).epsilon(1e-9));
    }
  }
}
