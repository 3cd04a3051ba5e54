// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/estimate/estimate.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan_result.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using namespace hetplan::test;

namespace {

double dominant_s(const plan& p, const planning_graph& m, const cluster& c) { return estimate(p, m, c, roofline{}).latency.value(); }
double critical_s(const plan& p, const planning_graph& m, const cluster& c) {
  return estimate<critical_path>(p, m, c, roofline{}).latency.value();
}

/// Returns a chain of layers with these forward and backward times, and `cut` bytes both ways between neighbours.
planning_graph chain_of(const std::vector<std::pair<double, double>>& forward_backward, double cut = 1) {
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  for (std::size_t i = 0; i < forward_backward.size(); ++i) {
    const auto [f, b] = forward_backward[i];
    layers.push_back(work_of("l" + std::to_string(i), f, b / 2, b / 2));
    if (i > 0) edges.push_back({static_cast<int>(i) - 1, static_cast<int>(i), cut, cut});
  }
  return model_of(std::move(layers), edges);
}
plan one_each(mode how, int stages, int microbatches, schedule_kind kind = schedule_kind::one_f_one_b) {
  std::vector<stage> all;
  for (int s = 0; s < stages; ++s) all.push_back(stage_of({s}, {{s, 1}}));
  return plan_of(how, 1, microbatches, std::move(all), kind);
}

struct slow_optimizer {
  [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
  [[nodiscard]] seconds optimizer_step(const layer&, const device&) const { return seconds(3); }
};

struct always_one_second {
  [[nodiscard]] seconds latency(const pipeline_steps&) const { return seconds(1); }
};
static_assert(check_latency_estimator<always_one_second>());

/// A random chain of layers on random devices, cut into stages of one device each.
struct random_chain {
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  std::vector<device> devices;
  hetplan::plan plan;

  /// @param traffic  bytes of a cut per FLOP of a stage: at 1 FLOP/s and 1 B/s, the ratio of wire time to compute time.
  random_chain(random_source& random, int stages, int microbatches, double traffic) {
    std::vector<stage> all;
    const int size = random.integer(1, 3);
    for (int s = 0; s < stages; ++s) {
      stage st;
      for (int i = random.integer(1, 2); i > 0; --i) {
        const int l = static_cast<int>(layers.size());
        layer_spec spec = work_of("l" + std::to_string(l), random.between(0.3, 2), random.between(0.3, 2), random.between(0.3, 2));
        spec.weight = bytes(random.between(0, 3));
        spec.activation = bytes(random.between(0, 3));
        if (l > 0) edges.push_back({l - 1, l, traffic * random.between(0.2, 2), traffic * random.between(0.2, 2)});
        st.layers.push_back(layer_id(l));
        layers.push_back(std::move(spec));
      }
      st.devices = {{.device = device_id(s), .samples = size}};
      all.push_back(std::move(st));
      add_device(random, random.between(0.5, 2));
    }
    plan = plan_of(mode::training, size, microbatches, std::move(all), schedule_kind::one_f_one_b);
  }

  void add_device(random_source& random, double speed) {
    device d = worker("d" + std::to_string(devices.size()), speed);
    d.power.idle = watts(random.between(1, 3));
    d.power.active = watts(random.between(3, 9));
    d.power.send = joules_per_byte(random.between(0, 2));
    d.power.receive = joules_per_byte(random.between(0, 2));
    devices.push_back(std::move(d));
  }
  [[nodiscard]] planning_graph model() const { return model_of(layers, edges); }
  /// Sets warm-ups of `per_stage` depth - `less`.
  void set_warmup(int per_stage, int less) {
    const int n = static_cast<int>(plan.stages.size());
    for (int s = 0; s < n; ++s) plan.schedule.warmup.push_back(per_stage * (n - s) - less);
  }
};

struct error_statistics {
  std::vector<double> errors;

  [[nodiscard]] double quantile_of_size(double q) const {
    std::vector<double> sizes;
    for (const double e : errors) sizes.push_back(std::abs(e));
    std::sort(sizes.begin(), sizes.end());
    return sizes[static_cast<std::size_t>(q * static_cast<double>(sizes.size() - 1))];
  }
  [[nodiscard]] double median() const {
    std::vector<double> sorted = errors;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
  [[nodiscard]] double lowest() const { return *std::min_element(errors.begin(), errors.end()); }
  [[nodiscard]] double highest() const { return *std::max_element(errors.begin(), errors.end()); }
  [[nodiscard]] std::string text() const {
    const auto percent = [](double x) { return to_text(std::round(1e4 * x) / 100 + 0.0) + " %"; };  // no -0
    return "median " + percent(median()) + ", 95 % within " + percent(quantile_of_size(0.95)) + ", from " + percent(lowest()) + " to " +
           percent(highest());
  }
};

}  // namespace

TEST_CASE("steps by hand: two stages and the wire between them") {
  const planning_graph m = chain_of({{1, 2}, {2, 2}}, 3);
  const plan p = one_each(mode::training, 2, 4);
  const pipeline_steps full = make_steps(p, m, wired(2, 0.5), roofline{});
  CHECK(full.microbatches == 4);
  REQUIRE(full.stages.size() == 2);
  CHECK(full.stages[0].forward_s == near(1));
  CHECK(full.stages[0].backward_s == near(2));
  CHECK(full.stages[0].total_s == near(3));
  CHECK(full.stages[0].in_flight == 3);
  CHECK(full.stages[1].in_flight == 1);
  CHECK(full.stages[0].depth == 2);
  REQUIRE(full.links.size() == 1);
  CHECK(full.links[0].forward_s == near(3.5));
  CHECK(full.links[0].backward_s == near(3.5));
  CHECK(full.links[0].forward_wire_s == near(3));
  CHECK(full.links[0].total_s == near(7));
  CHECK(full.links[0].own_s == near(7 + 3 * 3));
  CHECK(make_steps(p, m, wireless(2, 0.5), roofline{}).links[0].own_s == near(7 + 3 * 6));
  // As in the simulator, at most M microbatches are in flight, and GPipe holds all of them.
  CHECK(make_steps(one_each(mode::training, 2, 2), m, wired(2), roofline{}).stages[0].in_flight == 2);
  CHECK(make_steps(one_each(mode::training, 2, 7, schedule_kind::gpipe), m, wired(2), roofline{}).stages[1].in_flight == 7);
  const pipeline_steps inference = make_steps(one_each(mode::inference, 2, 7), m, wired(2), roofline{});
  CHECK(inference.stages[0].in_flight == 1);
  CHECK(inference.stages[0].total_s == near(1));
  CHECK(inference.links[0].total_s == near(3));
  CHECK(inference.links[0].own_s == near(7 * 3));
}

TEST_CASE("a replica group is as slow as its slowest device in each phase, and its total is one device's") {
  planning_graph m = model_of({work_of("a", 2, 3, 3)}, {});
  std::vector<device> devices = {worker("slow", 1), worker("fast", 2)};
  const cluster c("pair", devices, mesh{bytes_per_second(1)});
  const pipeline_steps steps = make_steps(plan_of(mode::training, 4, 1, {stage_of({0}, {{0, 1}, {1, 3}})}), m, c, roofline{});
  CHECK(steps.stages[0].forward_s == near(3));
  CHECK(steps.stages[0].backward_s == near(9));
  CHECK(steps.stages[0].total_s == near(12));
  REQUIRE(steps.stages[0].devices.size() == 2);
  CHECK(steps.stages[0].devices[0].forward_s == near(2));
  CHECK(steps.stages[0].devices[0].backward_s == near(6));
}

TEST_CASE("latency by hand: the last stage dominates, and both estimators say what the simulator says") {
  const planning_graph m = chain_of({{1, 2}, {2, 2}});
  const plan p = one_each(mode::training, 2, 3);
  const cluster c = wired(2);
  CHECK(judged(p, m, c).evaluation.latency.value() == near(17));  // 1 + 1, 3 * 4, 1 + 2
  CHECK(dominant_s(p, m, c) == near(17));
  CHECK(critical_s(p, m, c) == near(17));
}

TEST_CASE("latency by hand: the first stage dominates") {
  const planning_graph m = chain_of({{2, 2}, {1, 1}});
  const plan p = one_each(mode::training, 2, 3);
  const cluster c = wired(2);
  CHECK(judged(p, m, c).evaluation.latency.value() == near(12));
  CHECK(dominant_s(p, m, c) == near(12));
  CHECK(critical_s(p, m, c) == near(12));
}

TEST_CASE("latency by hand: with one microbatch in flight nothing overlaps, and both estimators see it") {
  const planning_graph m = chain_of({{1, 1}, {1, 1}}, 0.5);
  plan p = one_each(mode::training, 2, 3);
  p.schedule.warmup = {1, 1};
  const cluster c = wired(2);
  CHECK(judged(p, m, c).evaluation.latency.value() == near(3 * 5));
  CHECK(critical_s(p, m, c) == near(3 * 5));
  CHECK(dominant_s(p, m, c) == near(3 * 5));
}

TEST_CASE("latency by hand: a diamond of stages is charged along its slower side") {
  const planning_graph m = model_of({work_of("a", 1, 1), work_of("b", 2, 2), work_of("c", 1, 1), work_of("d", 1, 1)},
                                    {{0, 1, 1, 1}, {0, 2, 1, 1}, {1, 3, 1, 1}, {2, 3, 1, 1}});
  const plan p = one_each(mode::training, 4, 2);
  const cluster c = wired(4);
  CHECK(dominant_s(p, m, c) == near(2 + 2 + 4 + 2 + 2 * 2));
  CHECK(critical_s(p, m, c) == near(14));
  CHECK(judged(p, m, c).evaluation.latency.value() == near(14));
}

TEST_CASE("a side branch that ends the iteration counts, though it lies on no longest way") {
  // Stage 1 dominates on a branch of its own, whatever the branch through stage 2 takes.
  const planning_graph m = model_of({work_of("a", 1, 1), work_of("b", 3, 3), work_of("c", 4, 4), work_of("d", 3, 3)},
                                    {{0, 1, 1, 1}, {0, 2, 1, 1}, {2, 3, 1, 1}});
  const plan p = one_each(mode::training, 4, 5);
  const cluster c = wired(4);
  CHECK(dominant_s(p, m, c) == near(2 + 2 + 5 * 8));
  CHECK(critical_s(p, m, c) == near(44));
}

TEST_CASE("inference by hand: the whole batch through the slowest step, and the rest of the way once") {
  const planning_graph m = chain_of({{1, 0}, {3, 0}, {1, 0}}, 0.5);
  const plan p = one_each(mode::inference, 3, 4);
  const cluster c = wired(3);
  const double expected = 1 + 0.5 + 4 * 3 + 0.5 + 1;
  CHECK(judged(p, m, c).evaluation.latency.value() == near(expected));
  CHECK(dominant_s(p, m, c) == near(expected));
  CHECK(critical_s(p, m, c) == near(expected));
  const planning_graph wire = chain_of({{1, 0}, {1, 0}}, 5);
  CHECK(dominant_s(one_each(mode::inference, 2, 3), wire, wired(2)) == near(1 + 3 * 5 + 1));
}

TEST_CASE("generation by hand: a token waits for its own way or for the slowest step of all groups") {
  const planning_graph m = chain_of({{1, 0}, {3, 0}}, 2);
  const auto tokens = [&](int groups) {
    plan p = one_each(mode::generation, 2, groups);
    p.workload.tokens = 5;
    return estimate(p, m, wired(2), roofline{});
  };
  CHECK(tokens(1).time_between_tokens->value() == near(1 + 2 + 3));
  CHECK(tokens(4).time_between_tokens->value() == near(4 * 3));
  CHECK(tokens(4).ttft->value() == near(1 + 2 + 4 * 3));
  CHECK(tokens(4).latency.value() == near(15 + 4 * 12));
  CHECK(tokens(4).devices[0].busy.value() == near(5 * 4 * 1));
  CHECK(dominant_s(one_each(mode::generation, 2, 3), chain_of({{1, 0}, {1, 0}}, 5), wired(2)) == near(17 + 15 * 3 * 5));  // 16 tokens
}

TEST_CASE("collectives by hand: ring, tied tensors and the optimizer, of which the later stage pays its own only") {
  layer_spec first = work_of("first", 1, 1), last = work_of("last", 1, 1);
  first.weight = last.weight = bytes(4);
  first.weight_group = last.weight_group = "tied";
  const planning_graph m = model_of({first, last}, {{0, 1, 1, 1}});
  const plan p = plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 1}, {1, 1}}), stage_of({1}, {{2, 2}})}, schedule_kind::one_f_one_b);
  const pipeline_steps steps = make_steps(p, m, wired(3), slow_optimizer{});
  CHECK(steps.stages[0].collective_s == near(4 + 4 + 3));
  CHECK(steps.stages[1].collective_s == near(3));
  CHECK(make_steps(p, m, wireless(3), slow_optimizer{}).stages[0].collective_s == near(2 * 4 + 2 * 4 + 3));
  // D = 2 + max(own, 4 + 2 * 4), R = max(11, 3 - 2 - 1).
  const evaluation e = estimate(p, m, wired(3), slow_optimizer{});
  CHECK(e.latency.value() == near(14 + 11));
  CHECK(e.devices[0].busy.value() == near(2 * 2 + 3));
  plan inference = p;
  inference.workload.mode = mode::inference;
  CHECK(make_steps(inference, m, wired(3), slow_optimizer{}).stages[0].collective_s == 0);
}

TEST_CASE("energy by hand: idle for T, active while busy, bytes each way") {
  const planning_graph m = chain_of({{1, 1}, {1, 1}}, 3);
  std::vector<device> devices = workers(2);
  for (device& d : devices) d.power = {watts(1), watts(11), joules_per_byte(0.5), joules_per_byte(0.25)};
  const cluster c("two", devices, mesh{bytes_per_second(1)});
  const evaluation e = estimate(one_each(mode::training, 2, 2), m, c, roofline{});
  CHECK(e.latency.value() == near(2 + 6 + 4));
  CHECK(e.devices[0].energy.value() == near(12 + 10 * 4 + 0.5 * 6 + 0.25 * 6));
  CHECK(e.devices[0].used);
  CHECK(e.energy().value() == near(2 * (12 + 40 + 4.5)));
  CHECK(e.bound.value() == 0);
  CHECK(e.resource_bytes.empty());
}

TEST_CASE("a cap on the busy share stretches the iteration until it holds") {
  const planning_graph m = chain_of({{1, 1}});
  device d = worker("d0");
  d.max_busy = 0.25;
  d.power.idle = d.power.active = watts(2);
  const cluster c("one", d);
  const evaluation e = estimate(plan_of(mode::training, 1, 3, {stage_of({0}, {{0, 1}})}), m, c, roofline{});
  CHECK(e.latency.value() == near(6 / 0.25));
  CHECK(e.devices[0].energy.value() == near(48));
  CHECK_FALSE(find_broken_limit(e, c).has_value());
  plan tokens = plan_of(mode::generation, 1, 3, {stage_of({0}, {{0, 1}})});
  tokens.workload.tokens = 4;
  const evaluation g = estimate(tokens, m, c, roofline{});
  CHECK(g.time_between_tokens->value() == near(3));
  CHECK(g.latency.value() == near(4 * 3 / 0.25));
  CHECK_FALSE(find_broken_limit(g, c).has_value());
}

TEST_CASE("sum and largest by hand: every step once, the largest again for each further microbatch") {
  const auto latency = [](const plan& p, const planning_graph& m, const cluster& c) {
    return estimate(p, m, c, roofline{}, {}, {}, any_step_law(sum_and_largest{})).latency.value();
  };
  // Stages of 3 and 4 s and a link of 3.5 s each way: the link is the largest step.
  CHECK(latency(one_each(mode::training, 2, 4), chain_of({{1, 2}, {2, 2}}, 3), wired(2, 0.5)) == near(3 + 7 + 4 + 3 * 7));
  CHECK(latency(one_each(mode::training, 2, 4), chain_of({{1, 2}, {2, 9}}, 3), wired(2, 0.5)) == near(3 + 7 + 11 + 3 * 11));
  CHECK(latency(one_each(mode::training, 2, 1), chain_of({{1, 2}, {2, 2}}, 3), wired(2, 0.5)) == near(14));  // no second microbatch
  // For inference in a pipeline, the formula is exact. Generation: the same between two tokens.
  CHECK(latency(one_each(mode::inference, 3, 4), chain_of({{1, 0}, {3, 0}, {1, 0}}, 0.5), wired(3)) == near(1 + 0.5 + 3 + 0.5 + 1 + 3 * 3));
  plan tokens = one_each(mode::generation, 2, 4);
  tokens.workload.tokens = 5;
  CHECK(latency(tokens, chain_of({{1, 0}, {3, 0}}, 2), wired(2)) == near(5 * (1 + 2 + 3 + 3 * 3)));
  // A diamond: 2 + 2 + 4 + 2 + 2 along its slower side, and 4 for the second microbatch.
  const planning_graph diamond = model_of({work_of("a", 1, 1), work_of("b", 2, 2), work_of("c", 1, 1), work_of("d", 1, 1)},
                                          {{0, 1, 1, 1}, {0, 2, 1, 1}, {1, 3, 1, 1}, {2, 3, 1, 1}});
  CHECK(latency(one_each(mode::training, 4, 2), diamond, wired(4)) == near(12 + 4));
  // Reductions are spread over the microbatches: a ring of 4 B over 2 of them adds 2 s to a step of 2 s.
  layer_spec first = work_of("first", 1, 1);
  first.weight = bytes(4);
  const planning_graph m = model_of({first, work_of("last", 1, 1)}, {{0, 1, 1, 1}});
  const plan ring = plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 1}, {1, 1}}), stage_of({1}, {{2, 2}})}, schedule_kind::one_f_one_b);
  CHECK(latency(ring, m, wired(3)) == near((2 + 2) + 4 + 4 + 4));
  plan free_ring = ring;  // a second stage of 2 s; the largest step is still 4 s
  free_ring.stages[1].devices = {{device_id(2), 1}, {device_id(3), 1}};
  CHECK(latency(free_ring, m, wired(4)) == near((2 + 2) + 4 + 2 + 4));
}

TEST_CASE("the largest step by hand: a stage's work of the iteration, its reduction beside it, or a link's whole traffic") {
  const auto latency = [](const plan& p, const planning_graph& m, const cluster& c) {
    return estimate(p, m, c, roofline{}, {}, {}, any_step_law(largest_step{})).latency.value();
  };
  // Work 4 x 3 and 4 x 4 s. The link pays its latency once each way: 7 + 3 x 3 s in full duplex, 7 + 3 x 6 s on a shared medium.
  const planning_graph m = chain_of({{1, 2}, {2, 2}}, 3);
  CHECK(latency(one_each(mode::training, 2, 4), m, wired(2, 0.5)) == near(16));
  CHECK(latency(one_each(mode::training, 2, 4), m, wired(2, 1)) == near(8 + 3 * 3));
  CHECK(latency(one_each(mode::training, 2, 4), m, wireless(2, 0.5)) == near(25));
  CHECK(latency(one_each(mode::training, 2, 4), chain_of({{1, 6}, {2, 2}}), wired(2)) == near(4 * 7));
  CHECK(latency(one_each(mode::inference, 3, 4), chain_of({{1, 0}, {3, 0}, {1, 0}}, 0.5), wired(3)) == near(4 * 3));
  // A ring longer than all work: 20 s for 20 B in a group of two.
  layer_spec first = work_of("first", 1, 1);
  first.weight = bytes(20);
  const planning_graph heavy = model_of({first, work_of("last", 1, 1)}, {{0, 1, 1, 1}});
  const plan ring = plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 1}, {1, 1}}), stage_of({1}, {{2, 2}})}, schedule_kind::one_f_one_b);
  CHECK(latency(ring, heavy, wired(3)) == near(20));
  // The dominant step adds fill and drain, so it is no less.
  CHECK(latency(ring, heavy, wired(3)) <= dominant_s(ring, heavy, wired(3)));
}

TEST_CASE("a missing route makes the estimate infinite, never a NaN") {
  layer_spec a = work_of("a", 1, 1), b = work_of("b", 1, 1);
  a.weight = bytes(1);
  const planning_graph m = model_of({a, b}, {{0, 1, 1, 1}});
  std::vector<device> devices = workers(3);
  const route_table one_wire{{{"wire", bytes_per_second(1)}}, {{"d0", "d1", {seconds(0), {{resource_id(0), 1}}}}}};
  const cluster islands("islands", devices, one_wire);
  const plan one_way = one_each(mode::training, 2, 2);
  const plan ring = plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 1}, {2, 1}}), stage_of({1}, {{1, 2}})});
  for (const plan& p : {one_way, ring}) {
    const evaluation e = estimate(p, m, islands, roofline{});
    CHECK(e.latency.value() == std::numeric_limits<double>::infinity());
    CHECK(e.devices[0].energy.value() == std::numeric_limits<double>::infinity());
    CHECK(critical_s(p, m, islands) == std::numeric_limits<double>::infinity());
    CHECK(estimate(p, m, islands, roofline{}, {}, {}, any_step_law(sum_and_largest{})).latency.value() ==
          std::numeric_limits<double>::infinity());
    CHECK(estimate(p, m, islands, roofline{}, {}, {}, any_step_law(largest_step{})).latency.value() ==
          std::numeric_limits<double>::infinity());
  }
  plan forward_only = one_way;
  forward_only.workload.mode = mode::inference;
  CHECK(dominant_s(forward_only, m, islands) == near(1 + 2 + 1));
}

TEST_CASE("plans that no estimator can read are refused") {
  const planning_graph m = chain_of({{1, 1}, {1, 1}});
  const cluster c = wired(3);
  const auto refused = [&](plan p, const std::string& why) {
    CHECK_THROWS_AS(make_steps(p, m, c, roofline{}), invalid_input);
    CHECK_THROWS_WITH(make_steps(p, m, c, roofline{}), Catch::Matchers::Contains(why));
  };
  plan p = one_each(mode::training, 2, 2);
  plan backwards = p;
  std::swap(backwards.stages[0], backwards.stages[1]);
  refused(backwards, "topological order");
  plan server = p;
  server.parameter_server = device_id(2);
  refused(server, "parameter server");
  refused(plan_of(mode::training, 2, 2, {stage_of({0}, {{0, 2}}), stage_of({1}, {{1, 1}}, 1)}), "one microbatch size");
  plan twice = plan_of(mode::training, 1, 2, {stage_of({0}, {{0, 1}}), stage_of({1}, {{0, 1}})});
  refused(twice, "explicit orders");
  plan no_layer = p;
  no_layer.stages.pop_back();
  refused(no_layer, "in no stage");
}

TEST_CASE("the dominant step of a chain is Asteroid's round latency, written as its equations 4 to 6") {
  // Half duplex without latency: M microbatches of a communication step take M (E_f + E_b), as in the paper.
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 600; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int stages = random.integer(1, 6);
    random_chain r(random, stages, random.integer(1, 20), random.spread(0.05, 6));
    const double capacity = random.between(0.5, 2);
    // Some stages are groups of three equal devices; f, b and f + b are the times of each.
    for (stage& s : r.plan.stages) {
      if (!random.chance(0.4)) continue;
      const device like = r.devices[s.devices.front().device.index()];
      for (int i = 0; i < 2; ++i) {
        device twin = like;
        twin.name = "d" + std::to_string(r.devices.size());
        s.devices.push_back({.device = device_id(r.devices.size()), .samples = s.devices.front().samples});
        r.devices.push_back(twin);
      }
    }
    // Groups share a microbatch of three times the samples per device.
    const int each = r.plan.microbatch_size;
    r.plan.microbatch_size = 3 * each;
    for (stage& s : r.plan.stages) {
      for (assignment& a : s.devices) a.samples = s.devices.size() == 1 ? 3 * each : each;
    }
    const cluster c("half", r.devices, mesh{bytes_per_second(capacity), {}, duplex::half});

    std::vector<double> E_f, E_b, T_a;
    double boundary = 0;
    for (std::size_t s = 0; s < r.plan.stages.size(); ++s) {
      const stage& st = r.plan.stages[s];
      const double n = static_cast<double>(st.devices.size());
      double f = 0, b = 0, W = 0;
      for (const layer_id l : st.layers) {
        const layer_spec& spec = r.layers[l.index()];
        f += spec.forward_flops->value();
        b += spec.backward_input_flops->value() + spec.backward_weight_flops->value();
        W += spec.weight.value();
      }
      const double rate = st.devices.front().samples / r.devices[st.devices.front().device.index()].compute.value();
      if (s > 0) {
        const tensor& cut = r.edges[static_cast<std::size_t>(boundary) - 1];
        E_f.push_back(r.plan.microbatch_size * cut.forward / capacity);
        E_b.push_back(r.plan.microbatch_size * cut.gradient / capacity);
        T_a.push_back(0);
      }
      E_f.push_back(f * rate);
      E_b.push_back(b * rate);
      T_a.push_back(2 * (n - 1) / n * W / capacity);
      boundary += static_cast<double>(st.layers.size());
    }
    const std::size_t S = E_f.size();
    const double M = r.plan.microbatches;
    std::size_t d = 0;
    double aligned = -1;
    for (std::size_t s = 0; s < S; ++s) {
      double total = M * (E_f[s] + E_b[s]);
      for (std::size_t i = 0; i < s; ++i) total += E_f[i] + E_b[i];
      if (total > aligned) {
        aligned = total;
        d = s;
      }
    }
    double T = 0;
    for (std::size_t s = 0; s < S; ++s) {
      double T_w = 0, T_e = M * (E_f[d] + E_b[d]);
      for (std::size_t i = 0; i < s; ++i) T_w += E_f[i];
      for (std::size_t i = s; i < d; ++i) T_e += E_f[i] + E_b[i];
      for (std::size_t i = d; i < s; ++i) T_e -= E_f[i] + E_b[i];
      T = std::max(T, T_w + T_e + T_a[s]);
    }
    REQUIRE(dominant_s(r.plan, r.model(), c) == Approx(T).epsilon(1e-12));
  }
}

TEST_CASE("the critical path of a chain is Algorithm 2 as corrected, written with the sums of its text") {
  // Half duplex without latency makes a link a step like any other. Steps are 1..S, as in the paper.
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 500; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int P = random.integer(1, 6), S = 2 * P - 1, M = random.integer(1, 20);
    const bool usual = random.chance(0.6);
    pipeline_steps steps{.mode = mode::training, .microbatches = M, .stages = {}, .links = {}};
    std::vector<double> f{0}, b{0}, A{0};
    std::vector<int> K(static_cast<std::size_t>(S) + 1, 1);
    for (int step = 1; step <= S; ++step) {
      f.push_back(random.between(0.1, 1));
      b.push_back(random.between(0.1, 1));
      A.push_back(step % 2 == 1 ? random.between(0, 4) : 0);
    }
    for (int step = S; step >= 1; --step) {
      const auto i = static_cast<std::size_t>(step);
      if (usual) K[i] = std::min(S - step + 1, M);
      else if (step % 2 == 1) K[i] = std::min(step == S ? 1 : K[i + 2] + random.integer(0, 2), M);
    }
    for (std::size_t i = 1; i <= static_cast<std::size_t>(S); ++i) {
      if (i % 2 == 0 && !usual) K[i] = std::min(K[i + 1] + 1, K[i - 1]);
      if (i % 2 == 1) {
        pipeline_steps::stage_step s{
            .forward_s = f[i], .backward_s = b[i], .total_s = f[i] + b[i], .collective_s = A[i], .in_flight = K[i]};
        if (i > 1) s.in.push_back(i / 2 - 1);
        if (i < static_cast<std::size_t>(S)) s.out.push_back(i / 2);
        steps.stages.push_back(s);
      } else {
        const double e = f[i] + b[i];
        steps.links.push_back({.from = i / 2 - 1,
                               .to = i / 2,
                               .forward_s = f[i],
                               .backward_s = b[i],
                               .forward_wire_s = f[i],
                               .backward_wire_s = b[i],
                               .total_s = e,
                               .own_s = M * e});
      }
    }
    const auto sum = [](const std::vector<double>& x, int from, int to) {
      double total = 0;
      for (int i = from; i <= to; ++i) total += x[static_cast<std::size_t>(i)];
      return total;
    };
    const auto most = [](const std::vector<double>& x, int to) { return *std::max_element(x.begin() + 1, x.begin() + to + 1); };
    const auto in_flight = [&](int step) { return K[static_cast<std::size_t>(step)]; };
    const auto e = [&](int from, int to) { return sum(f, from, to) + sum(b, from, to); };
    int d = 1;
    for (int i = 2; i <= S; ++i) {
      if (e(1, i - 1) + M * e(i, i) > e(1, d - 1) + M * e(d, d)) d = i;
    }
    double start = 0, end = 0, trips = 0;
    for (int p = d; p <= S; ++p) start = std::max(start, sum(f, 1, p) + (in_flight(p) - 1) * most(f, p) + sum(b, d + 1, p));
    for (int s = 1; s <= S; ++s) {
      for (int p = std::max(s, d); p <= S; ++p) {
        end = std::max(end, sum(b, s, p) + (in_flight(p) - 1) * most(b, p) + sum(f, d + 1, p) + A[static_cast<std::size_t>(s)]);
      }
    }
    for (int s = 1; s <= S; s += 2) trips = std::max(trips, e(1, s - 1) + std::ceil(1.0 * M / in_flight(s)) * e(s, S));
    const double expected = std::max(trips, start + (M - in_flight(d)) * e(d, d) + end);
    REQUIRE(critical_path{}.latency(steps).value() == Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("latency by hand: two diamonds in a row, and one microbatch takes the slow side of both") {
  std::vector<layer_spec> layers;
  for (int i = 0; i < 7; ++i) {
    const double t = i == 1 || i == 5 ? 4 : 1;
    layers.push_back(work_of("l" + std::to_string(i), t, t));
  }
  std::vector<tensor> edges;
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 6}}) {
    edges.push_back({from, to, 1, 1});
  }
  const planning_graph m = model_of(layers, edges);
  const plan p = one_each(mode::training, 7, 1);
  const double expected = 2 + 2 + 8 + 2 + 2 + 2 + 8 + 2 + 2;
  CHECK(judged(p, m, wired(7)).evaluation.latency.value() == near(expected));
  CHECK(dominant_s(p, m, wired(7)) == near(expected));
  CHECK(critical_s(p, m, wired(7)) == near(expected));
}

TEST_CASE("a collective off the longest way waits for the longest way to its own stage") {
  //     0 - 1 (slow) - 3 - 4 (slow)
  //      \- 2 --------/ \- 5 (a long collective)
  const planning_graph m =
      model_of({work_of("0", 1, 1), work_of("1", 4, 4), work_of("2", 1, 1), work_of("3", 1, 1), work_of("4", 4, 4), work_of("5", 1, 1)},
               {{0, 1, 1, 1}, {0, 2, 1, 1}, {1, 3, 1, 1}, {2, 3, 1, 1}, {3, 4, 1, 1}, {3, 5, 1, 1}});
  pipeline_steps steps = make_steps(one_each(mode::training, 6, 1), m, wired(6), roofline{});
  steps.stages[5].collective_s = 100;
  CHECK(critical_path{}.latency(steps).value() == near(1 + 1 + 4 + 1 + 1 + 1 + 1 + 1 + 100));
  // The dominant step adds the collective at the end of the longest path, 26 s, less the backward passes behind it.
  CHECK(dominant_step{}.latency(steps).value() == near(26 + 100 - 6));
}

TEST_CASE("on chains without contention both estimators stay near the simulator") {
  struct setting {
    const char* name;
    int per_stage, less;  // warm-up
    double critical_median, critical_95, critical_above, dominant_median;
  };
  // Tolerances are about twice the measured errors. With one microbatch in flight, both estimators are exact.
  const auto s = GENERATE(values<setting>({{"warm-up 2 depth - 1", 2, 1, 0.03, 0.12, 0.25, 0.05},
                                           {"warm-up depth", 1, 0, 0.05, 0.17, 0.25, 0.10},
                                           {"warm-up 1", 0, -1, 1e-9, 1e-9, 1e-9, 1e-9}}));
  error_statistics dominant, critical;
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    INFO(s.name << ", seed " << seed);
    random_source random(seed);
    const int stages = random.integer(2, 6);
    const double traffic = random.pick(std::vector{0.1, 0.5, 1.0});
    random_chain r(random, stages, random.integer(2, 32), traffic);
    if (s.per_stage != 2) r.set_warmup(s.per_stage, s.less);
    const cluster c("full", r.devices, mesh{bytes_per_second(1), seconds(random.chance(0.5) ? random.unit() : 0)});
    const planning_graph m = r.model();
    const double simulated = judged(r.plan, m, c).evaluation.latency.value();
    dominant.errors.push_back(dominant_s(r.plan, m, c) / simulated - 1);
    critical.errors.push_back(critical_s(r.plan, m, c) / simulated - 1);
    // The dominant step neglects only waiting.
    CHECK(dominant.errors.back() <= 1e-9);
  }
  WARN(s.name << ": dominant step " << dominant.text());
  WARN(s.name << ": critical path " << critical.text());
  CHECK(std::abs(critical.median()) <= s.critical_median);
  CHECK(std::abs(dominant.median()) <= s.dominant_median);
  CHECK(critical.quantile_of_size(0.95) <= s.critical_95);
  CHECK(critical.highest() <= s.critical_above);
  CHECK(critical.quantile_of_size(0.95) <= dominant.quantile_of_size(0.95) + 1e-9);
}

TEST_CASE("one stage leaves nothing to estimate: time, energy, memory and busy time are the simulator's") {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    random_chain r(random, 1, random.integer(1, 6), 1);
    const int n = random.integer(1, 4);
    while (static_cast<int>(r.devices.size()) < n) {
      r.plan.stages[0].devices.push_back({.device = device_id(r.devices.size()), .samples = 1});
      r.add_device(random, random.between(0.5, 2));
    }
    r.plan.microbatch_size = 0;
    for (assignment& a : r.plan.stages[0].devices) r.plan.microbatch_size += a.samples = random.integer(1, 3);
    if (random.chance(0.3)) r.plan.schedule.kind = schedule_kind::gpipe;
    r.plan.workload.mode = random.pick(std::vector{mode::training, mode::training, mode::inference, mode::generation});
    r.plan.workload.context = random.integer(0, 5);
    for (layer_spec& l : r.layers) l.kv_bytes_per_token = bytes(random.unit());
    const bytes_per_second rate(random.between(0.5, 2));
    const seconds wait(random.unit());
    const cluster c = random.chance(0.4)   ? cluster("medium", r.devices, shared_medium{rate, wait})
                      : random.chance(0.5) ? cluster("star", r.devices, star{rate, wait, duplex::half})
                                           : cluster("mesh", r.devices, mesh{rate, wait});
    const planning_graph m = r.model();
    const evaluation simulated = judged(r.plan, m, c).evaluation;
    for (const evaluation& e : {estimate(r.plan, m, c, roofline{}), estimate<critical_path>(r.plan, m, c, roofline{})}) {
      REQUIRE(e.latency.value() == Approx(simulated.latency.value()).epsilon(1e-9));
      REQUIRE(e.time_between_tokens.has_value() == simulated.time_between_tokens.has_value());
      for (std::size_t d = 0; d < c.size(); ++d) {
        INFO("device " << d);
        REQUIRE(e.devices[d].used == simulated.devices[d].used);
        REQUIRE(e.devices[d].energy.value() == Approx(simulated.devices[d].energy.value()).epsilon(1e-9));
        REQUIRE(e.devices[d].peak_memory.value() == Approx(simulated.devices[d].peak_memory.value()).epsilon(1e-12));
        REQUIRE(e.devices[d].busy.value() == Approx(simulated.devices[d].busy.value()).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("memory of a chain is the simulator's peak under every warm-up, and so is energy but for the idle power") {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 300; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    random_chain r(random, random.integer(2, 5), random.integer(1, 12), 1);
    // A group of two replaces one device and keeps the microbatch.
    if (r.plan.microbatch_size > 1 && random.chance(0.5)) {
      auto& group = r.plan.stages[random.index(r.plan.stages.size())].devices;
      group.front().samples -= 1;
      group.push_back({.device = device_id(r.devices.size()), .samples = 1});
      r.add_device(random, random.between(0.5, 2));
    }
    switch (random.integer(0, 4)) {
      case 0: r.set_warmup(1, 0); break;
      case 1: r.set_warmup(0, -1); break;
      case 2: r.plan.schedule.kind = schedule_kind::gpipe; break;
      case 3: r.plan.workload.mode = mode::inference; break;
      default: break;
    }
    const cluster c("full", r.devices, mesh{bytes_per_second(1), seconds(random.unit())});
    const planning_graph m = r.model();
    const evaluation simulated = judged(r.plan, m, c).evaluation, e = estimate(r.plan, m, c, roofline{});
    for (const device& d : c.devices()) {
      INFO("device " << d.id.index());
      const device_evaluation &found = e.devices[d.id.index()], &expected = simulated.devices[d.id.index()];
      REQUIRE(found.peak_memory.value() == Approx(expected.peak_memory.value()).epsilon(1e-12));
      REQUIRE(found.busy.value() == Approx(expected.busy.value()).epsilon(1e-9));
      const joules found_active = found.energy - d.power.idle * e.latency, active = expected.energy - d.power.idle * simulated.latency;
      REQUIRE(found_active.value() == Approx(active.value()).epsilon(1e-9));
    }
  }
}

TEST_CASE("on graphs of stages memory is the simulator's peak, and the estimates stay near its time") {
  error_statistics dominant, critical;
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 200; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int stages = random.integer(3, 6);
    std::vector<layer_spec> layers;
    std::vector<tensor> edges;
    std::vector<stage> all;
    for (int s = 0; s < stages; ++s) {
      layers.push_back(work_of("l" + std::to_string(s), random.between(0.3, 2), random.between(0.3, 2), random.between(0.3, 2)));
      layers.back().weight = bytes(random.unit());
      layers.back().activation = bytes(random.unit());
      all.push_back(stage_of({s}, {{s, 1}}));
      const int from = s > 0 ? random.integer(0, s - 1) : -1;
      for (int t = 0; t < s; ++t) {
        if (t == from || random.chance(0.2)) edges.push_back({t, s, 0.5 * random.unit(), 0.5 * random.unit()});
      }
    }
    plan p = plan_of(mode::training, 1, random.integer(1, 16), all, schedule_kind::one_f_one_b);
    const planning_graph m = model_of(layers, edges);
    const cluster c = wired(stages, random.chance(0.5) ? 0.2 * random.unit() : 0);
    const stage_graph g = make_stage_graph(p, m);
    const int policy = random.integer(0, 2);
    for (const auto& node : g.nodes) {
      if (policy > 0) p.schedule.warmup.push_back(policy == 1 ? node.depth : 1);
    }
    const evaluation simulated = judged(p, m, c).evaluation, e = estimate(p, m, c, roofline{});
    for (std::size_t d = 0; d < c.size(); ++d) {
      INFO("device " << d);
      REQUIRE(e.devices[d].peak_memory.value() == Approx(simulated.devices[d].peak_memory.value()).epsilon(1e-12));
    }
    if (policy > 0) continue;
    dominant.errors.push_back(e.latency / simulated.latency - 1);
    critical.errors.push_back(critical_s(p, m, c) / simulated.latency.value() - 1);
  }
  WARN("graphs, warm-up 2 depth - 1: dominant step " << dominant.text());
  WARN("graphs, warm-up 2 depth - 1: critical path " << critical.text());
  CHECK(std::abs(dominant.median()) <= 0.05);
  CHECK(std::abs(critical.median()) <= 0.05);
  CHECK(dominant.quantile_of_size(0.95) <= 0.25);
  CHECK(critical.quantile_of_size(0.95) <= 0.25);
}
