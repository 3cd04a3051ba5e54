// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/partition/brute_force.hpp>
#include <hetplan/plan/validate.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_brute_force {

using namespace hetplan;
using namespace hetplan::test;
using partition::brute_force;
using partition::for_each_plan;
using partition::scored_plan;
using partition::space_options;

namespace {

/// Returns a chain of n equal layers, 1 s forward and 1 s backward per sample.
planning_graph row(int n, double cut = 0.5) {
  std::vector<layer_spec> layers;
  std::vector<tensor> edges;
  for (int i = 0; i < n; ++i) {
    layers.push_back(work_of("l" + std::to_string(i), 1, 0.5, 0.5));
    if (i > 0) edges.push_back({i - 1, i, cut, cut});
  }
  return model_of(std::move(layers), edges);
}

plan blank(int microbatch_size, int microbatches, mode how = mode::training) {
  return plan_of(how, microbatch_size, microbatches, {}, schedule_kind::one_f_one_b);
}

std::vector<plan> all_plans(const layer_sequence& s, const planning_graph& m, const cluster& c, const plan& b, const space_options& o) {
  std::vector<plan> all;
  const long long visited = for_each_plan(s, m, c, roofline{}, plain_memory{}, b, o, [&](const plan& p) { all.push_back(p); });
  REQUIRE(visited == static_cast<long long>(all.size()));
  return all;
}

template <class Objective, class Estimator = dominant_step>
std::vector<scored_plan> best_of(const planning_graph& m, const cluster& c, const plan& b, const space_options& o,
                                 const Objective& objective, int keep, const Estimator& estimator = {}) {
  return brute_force(sequence_of(m), m, c, roofline{}, plain_memory{}, linear_power{}, b, o, objective, estimator, keep);
}

double binomial(int n, int k) {
  double value = 1;
  for (int i = 0; i < k; ++i) value = value * (n - i) / (i + 1);
  return std::round(value);
}

/// Returns the number of ordered P-tuples of disjoint non-empty subsets of n devices, by inclusion-exclusion over the empty ones.
double groupings(int n, int P) {
  double total = 0;
  for (int k = 0; k <= P; ++k) total += (k % 2 == 0 ? 1 : -1) * binomial(P, k) * std::pow(P + 1 - k, n);
  return total;
}

std::string key(const plan& p) {
  std::string text;
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) text += std::to_string(l.value) + "-";
    for (const assignment& a : s.devices) text += std::to_string(a.device.value) + "*" + std::to_string(a.samples) + "+";
    text += " ";
  }
  return text;
}
std::set<std::string> keys(const std::vector<plan>& plans) {
  std::set<std::string> all;
  for (const plan& p : plans) all.insert(key(p));
  return all;
}

}  // namespace

TEST_CASE("the space by hand: two layers on two devices") {
  const planning_graph m = row(2);
  const auto plans = all_plans(sequence_of(m), m, wired(2), blank(2, 2), {});
  std::vector<std::string> found;
  for (const plan& p : plans) found.push_back(key(p));
  REQUIRE(found == std::vector<std::string>{"0-0*2+ 1-1*2+ ", "0-1*2+ 1-0*2+ ", "0-1-0*2+ ", "0-1-1*2+ ", "0-1-0*1+1*1+ "});
  CHECK(plans.front().stages[1].name == "s1");
  CHECK(plans.front().schedule.warmup.empty());
}

TEST_CASE("chains of like devices have as many plans as the closed formula says, all different and all valid") {
  for (int layers = 1; layers <= 5; ++layers) {
    for (int devices = 1; devices <= 4; ++devices) {
      for (const int max_stages : {2, 16}) {
        INFO(layers << " layers, " << devices << " devices, at most " << max_stages << " stages");
        const planning_graph m = row(layers);
        const cluster c = wired(devices);
        // Equal devices share 12 samples evenly, so each device of a group of up to 4 has work.
        const auto plans = all_plans(sequence_of(m), m, c, blank(12, 1), {.max_stages = max_stages});
        double expected = 0;
        for (int P = 1; P <= std::min({layers, devices, max_stages}); ++P) expected += binomial(layers - 1, P - 1) * groupings(devices, P);
        CHECK(static_cast<double>(plans.size()) == expected);
        CHECK(keys(plans).size() == plans.size());
        for (const plan& p : plans) CHECK_FALSE(validate(p, m, c).has_value());
      }
    }
  }
}

TEST_CASE("contiguous groups are runs of the device order, in the order of the stages") {
  for (int layers = 1; layers <= 5; ++layers) {
    for (int devices = 1; devices <= 5; ++devices) {
      INFO(layers << " layers, " << devices << " devices");
      const planning_graph m = row(layers);
      const auto plans = all_plans(sequence_of(m), m, wired(devices), blank(60, 1), {.contiguous_groups = true});
      // P runs have 2 P ends among n + 1 gaps, and a run may begin where the previous one ends: C(n + P, 2 P).
      double expected = 0;
      for (int P = 1; P <= std::min(layers, devices); ++P) expected += binomial(layers - 1, P - 1) * binomial(devices + P, 2 * P);
      CHECK(static_cast<double>(plans.size()) == expected);
      CHECK(keys(plans).size() == plans.size());
    }
  }
  const planning_graph m = row(2);
  const space_options turned{.device_order = {device_id(2), device_id(0), device_id(1)}, .contiguous_groups = true};
  const auto found = keys(all_plans(sequence_of(m), m, wired(3), blank(6, 1), turned));
  CHECK(found.size() == 6 + 5);
  CHECK(found.contains("0-1-2*2+0*2+1*2+ "));
  CHECK(found.contains("0-2*6+ 1-0*3+1*3+ "));
  CHECK(found.contains("0-2*6+ 1-1*6+ "));
  CHECK_FALSE(found.contains("0-1-2*3+1*3+ "));
  CHECK_FALSE(found.contains("0-0*6+ 1-2*6+ "));
}

TEST_CASE("a device order changes the lists of devices, not the set of groups") {
  const planning_graph m = row(3);
  const space_options turned{.device_order = {device_id(2), device_id(0), device_id(1)}};
  auto plain = all_plans(sequence_of(m), m, wired(3), blank(6, 1), {});
  auto other = all_plans(sequence_of(m), m, wired(3), blank(6, 1), turned);
  CHECK(keys(plain) != keys(other));
  CHECK(keys(other).contains("0-1-2-2*3+1*3+ "));
  for (auto* plans : {&plain, &other}) {
    for (plan& p : *plans) {
      for (stage& s : p.stages) {
        std::sort(s.devices.begin(), s.devices.end(), [](const assignment& a, const assignment& b) { return a.device < b.device; });
      }
    }
  }
  CHECK(keys(plain) == keys(other));
}

TEST_CASE("stages end where the sequence lets them: inside one chain, or around whole chains") {
  const planning_graph m = row(4);
  layer_sequence s = sequence_of(m);
  s.chain_first = {0, 2};
  // Of the 8 cuts of four blocks, 0 | 123, 012 | 3 and 0 | 12 | 3 have a stage in two chains that does not hold both whole.
  const auto plans = all_plans(s, m, wired(1), blank(1, 1), {});
  CHECK(plans.size() == 1);
  std::set<std::string> cuts;
  for (const plan& p : all_plans(s, m, wired(4), blank(12, 1), {})) {
    std::string cut;
    for (const stage& st : p.stages) cut += std::to_string(st.layers.size());
    cuts.insert(cut);
  }
  CHECK(cuts == std::set<std::string>{"4", "22", "112", "211", "1111"});
}

TEST_CASE("blocks of several layers stay together, in the order of the blocks") {
  const planning_graph m = model_of({work_of("a", 1, 1), work_of("b", 1, 1), work_of("c", 1, 1)}, {{0, 2, 1, 1}});
  const layer_sequence s{.blocks = {{layer_id(1)}, {layer_id(0), layer_id(2)}}};
  const auto found = keys(all_plans(s, m, wired(2), blank(1, 1), {}));
  CHECK(found == std::set<std::string>{"1-0-2-0*1+ ", "1-0-2-1*1+ ", "1-0*1+ 0-2-1*1+ ", "1-1*1+ 0-2-0*1+ "});
}

TEST_CASE("all shares are all ways to write the microbatch as positive integers") {
  const planning_graph m = row(1);
  for (int devices = 1; devices <= 4; ++devices) {
    for (int size = 1; size <= 6; ++size) {
      INFO(devices << " devices, " << size << " samples");
      double expected = 0;
      for (int n = 1; n <= devices; ++n) expected += binomial(devices, n) * binomial(size - 1, n - 1);
      CHECK(static_cast<double>(all_plans(sequence_of(m), m, wired(devices), blank(size, 1), {.all_shares = true}).size()) == expected);
    }
  }
}

TEST_CASE("a group in which a device would get nothing is no part of the space") {
  const planning_graph m = row(1);
  const cluster c("uneven", {worker("fast", 10), worker("slow", 1)}, mesh{bytes_per_second(1)});
  CHECK(keys(all_plans(sequence_of(m), m, c, blank(2, 1), {})) == std::set<std::string>{"0-0*2+ ", "0-1*2+ "});
  CHECK(keys(all_plans(sequence_of(m), m, c, blank(2, 1), {.all_shares = true})).contains("0-0*1+1*1+ "));
}

TEST_CASE("memory caps shares by the microbatches in flight under each warm-up") {
  layer_spec first = work_of("first", 1, 1), last = work_of("last", 1, 1);
  first.activation = bytes(100);
  const planning_graph m = model_of({first, last}, {{0, 1, 1, 1}});
  std::vector<device> devices = workers(2);
  const auto count = [&](double memory, warmup_rule warmup, int microbatches, mode how = mode::training) {
    for (device& d : devices) d.memory = bytes(memory);
    const cluster c("tight", devices, mesh{bytes_per_second(1)});
    std::set<std::string> found;
    for (const plan& p : all_plans(sequence_of(m), m, c, blank(1, microbatches, how), {.warmup = warmup})) found.insert(key(p));
    return static_cast<int>(found.contains("0-0*1+ 1-1*1+ "));
  };
  // The first of two stages keeps 3, 2 or 1 microbatches of 100 B in flight.
  CHECK(count(300, warmup_rule::hide_communication, 8) == 1);
  CHECK(count(299, warmup_rule::hide_communication, 8) == 0);
  CHECK(count(200, warmup_rule::depth, 8) == 1);
  CHECK(count(199, warmup_rule::depth, 8) == 0);
  CHECK(count(100, warmup_rule::one, 8) == 1);
  CHECK(count(99, warmup_rule::one, 8) == 0);
  CHECK(count(200, warmup_rule::hide_communication, 2) == 1);
  CHECK(count(100, warmup_rule::hide_communication, 8, mode::inference) == 1);
  // Two samples take 200 B on one device; two devices hold one sample each.
  for (device& d : devices) d.memory = bytes(100);
  const cluster c("tight", devices, mesh{bytes_per_second(1)});
  CHECK(keys(all_plans(sequence_of(m), m, c, blank(2, 4), {})) == std::set<std::string>{"0-1-0*1+1*1+ "});
}

TEST_CASE("in generation every sequence's cache takes room") {
  layer_spec l = work_of("l", 1);
  l.kv_bytes_per_token = bytes(1);
  const planning_graph m = model_of({l}, {});
  device d = worker("d0");
  plan b = blank(2, 3, mode::generation);
  b.workload.context = 10 - b.workload.tokens;
  for (const int memory : {59, 60}) {
    d.memory = bytes(memory);
    CHECK(all_plans(sequence_of(m), m, cluster("one", d), b, {}).size() == (memory == 60 ? 1U : 0U));
  }
}

TEST_CASE("the warm-up is written into the plan unless it is the default, or nothing is there to warm up") {
  const planning_graph m = row(3);
  const cluster c = wired(3);
  const auto written = [&](const plan& b, warmup_rule rule) {
    std::vector<int> found;
    for (const plan& p : all_plans(sequence_of(m), m, c, b, {.warmup = rule})) {
      if (p.stages.size() == 3) found = p.schedule.warmup;
    }
    return found;
  };
  CHECK(written(blank(1, 8), warmup_rule::hide_communication).empty());
  CHECK(written(blank(1, 8), warmup_rule::depth) == std::vector<int>{3, 2, 1});
  CHECK(written(blank(1, 8), warmup_rule::one) == std::vector<int>{1, 1, 1});
  CHECK(written(blank(1, 8, mode::inference), warmup_rule::depth).empty());
  plan gpipe = blank(1, 8);
  gpipe.schedule.kind = schedule_kind::gpipe;
  CHECK(written(gpipe, warmup_rule::depth).empty());
}

TEST_CASE("each device runs at its fastest degree of tensor parallelism, the smaller on a tie") {
  device d = worker("d0", 1);
  d.accelerators = 4;
  const auto degree = [&](double gathered, bool profiled = false) {
    d.interconnect = bytes_per_second(1);
    layer_spec a = work_of("a", 4, 4), b = work_of("b", 0);
    if (profiled) a.profiles = {{"d0", {1}, {4}, {4}}};
    const planning_graph m = model_of({a, b}, {{0, 1, gathered, gathered}});
    std::vector<plan> found;
    for_each_plan(sequence_of(m), m, cluster("one", d), profiled_or_roofline{}, plain_memory{}, blank(1, 1), {},
                  [&](const plan& p) { found.push_back(p); });
    REQUIRE(found.size() == 1);
    return found[0].stages[0].devices[0].tensor_parallel;
  };
  CHECK(degree(0.1) == 4);  // seconds at degree g: 8 / g + 4 (g - 1) / g * gathered
  CHECK(degree(2) == 1);    // 8 s at every degree
  CHECK(degree(100) == 1);
  CHECK(degree(0.1, true) == 1);
}

TEST_CASE("a visitor that stops is asked no more") {
  const planning_graph m = row(4);
  for (const bool all_shares : {false, true}) {
    for (const bool contiguous : {false, true}) {
      int seen = 0;
      const auto third = [&](const plan&) { return ++seen == 3 ? control::stop : control::go; };
      const space_options o{.contiguous_groups = contiguous, .all_shares = all_shares};
      CHECK(for_each_plan(sequence_of(m), m, wired(4), roofline{}, plain_memory{}, blank(4, 1), o, third) == 3);
      CHECK(seen == 3);
    }
  }
}

TEST_CASE("the best plan by hand, and the second best") {
  const planning_graph m = row(2);
  const cluster c("two", {worker("slow", 1), worker("fast", 3)}, mesh{bytes_per_second(100)});
  const auto best = best_of(m, c, blank(1, 2), {}, minimize_latency{}, 3);
  REQUIRE(best.size() == 3);
  CHECK(key(best[0].plan) == "0-1-1*1+ ");
  CHECK(best[0].score == near(8.0 / 3));
  CHECK(best[0].evaluation.latency.value() == near(8.0 / 3));
  CHECK(key(best[1].plan) == "0-0*1+ 1-1*1+ ");
  CHECK(best[1].score == near(2 * 2));
  CHECK(key(best[2].plan) == "0-1*1+ 1-0*1+ ");
  CHECK(best[2].score == near(2.0 / 3 + 0.01 + 2 * 2));
  const auto all = best_of(m, c, blank(1, 2), {}, minimize_latency{}, 100);
  REQUIRE(all.size() == 4);
  CHECK(key(all[3].plan) == "0-1-0*1+ ");
  CHECK(key(best_of(m, c, blank(1, 2), {}, maximize_throughput{2}, 1)[0].plan) == "0-1-1*1+ ");
}

TEST_CASE("on a tie fewer stages win, and the plan that is found first") {
  struct indifferent {
    [[nodiscard]] double score(const evaluation&) const { return 7; }
  };
  const planning_graph m = row(2);
  const auto all = all_plans(sequence_of(m), m, wired(3), blank(6, 1), {});
  const auto best = best_of(m, wired(3), blank(6, 1), {}, indifferent{}, 8);
  REQUIRE(best.size() == 8);
  std::vector<std::string> expected;
  for (const std::size_t stages : {1U, 2U}) {
    for (const plan& p : all) {
      if (p.stages.size() == stages && expected.size() < 8) expected.push_back(key(p));
    }
  }
  for (std::size_t i = 0; i < 8; ++i) CHECK(key(best[i].plan) == expected[i]);
}

TEST_CASE("plans beyond a limit and plans without a route are left out") {
  const planning_graph m = row(2, 1);
  std::vector<device> devices = workers(2);
  devices[0].power = devices[1].power = {watts(1), watts(1)};
  devices[0].energy_budget = joules(5);
  const auto found = [&](const cluster& c) {
    std::set<std::string> all;
    for (const scored_plan& b : best_of(m, c, blank(1, 1), {}, minimize_latency{}, 100)) all.insert(key(b.plan));
    return all;
  };
  // A plan of one stage takes 4 J, a plan of two stages 6 J.
  CHECK(found(cluster("mesh", devices, mesh{bytes_per_second(1)})) == std::set<std::string>{"0-1-0*1+ ", "0-1-1*1+ "});
  devices[0].energy_budget.reset();
  CHECK(found(cluster("mesh", devices, mesh{bytes_per_second(1)})).size() == 4);
  CHECK(found(cluster("apart", devices, route_table{})) == std::set<std::string>{"0-1-0*1+ ", "0-1-1*1+ "});
}

TEST_CASE("more kept plans only append, more stages and more shares never hurt, every estimator is asked") {
  const std::uint64_t first = first_seed();
  for (std::uint64_t seed = first; seed < first + 20; ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    std::vector<layer_spec> layers;
    std::vector<tensor> edges;
    for (int i = 0; i < 4; ++i) {
      layers.push_back(work_of("l" + std::to_string(i), random.between(0.1, 2), random.between(0.1, 2), random.between(0.1, 2)));
      layers.back().weight = bytes(random.between(0, 1));
      if (i > 0) edges.push_back({i - 1 - random.integer(0, std::min(1, i - 1)), i, random.unit(), random.unit()});
    }
    const planning_graph m = model_of(layers, edges);
    const cluster c("three", {worker("a", random.between(1, 2)), worker("b", random.between(1, 2)), worker("c", random.between(1, 2))},
                    shared_medium{bytes_per_second(2)});
    const plan b = blank(3, random.integer(1, 4));
    const auto five = best_of(m, c, b, {}, minimize_latency{}, 5), two = best_of(m, c, b, {}, minimize_latency{}, 2);
    REQUIRE(five.size() == 5);
    REQUIRE(two.size() == 2);
    for (std::size_t i = 0; i < 5; ++i) {
      if (i < 2) CHECK(two[i].plan == five[i].plan);
      if (i > 0) CHECK(five[i - 1].score <= five[i].score);
      CHECK(five[i].score == estimate(five[i].plan, m, c, roofline{}).latency.value());
    }
    double least = std::numeric_limits<double>::infinity(), least_critical = least;
    for (const plan& p : all_plans(sequence_of(m), m, c, b, {})) {
      least = std::min(least, estimate(p, m, c, roofline{}).latency.value());
      least_critical = std::min(least_critical, estimate<critical_path>(p, m, c, roofline{}).latency.value());
    }
    CHECK(five[0].score == least);
    CHECK(best_of(m, c, b, {}, minimize_latency{}, 1, critical_path{})[0].score == least_critical);
    CHECK(best_of(m, c, b, {.max_stages = 1}, minimize_latency{}, 1)[0].score >= least);
    CHECK(best_of(m, c, b, {.contiguous_groups = true}, minimize_latency{}, 1)[0].score >= least);
    CHECK(best_of(m, c, b, {.all_shares = true}, minimize_latency{}, 1)[0].score <= least);
  }
}

TEST_CASE("a space that is too large, and input that makes no space, are refused by name and number") {
  const planning_graph m = row(25);
  const auto refused = [](const planning_graph& model, const cluster& c, const plan& b, const space_options& o, const std::string& why) {
    const auto go = [&] { for_each_plan(sequence_of(model), model, c, roofline{}, plain_memory{}, b, o, [](const plan&) {}); };
    CHECK_THROWS_AS(go(), invalid_input);
    CHECK_THROWS_WITH(go(), Catch::Matchers::Contains(why));
  };
  refused(m, wired(2), blank(1, 1), {}, "25 blocks on 2 devices");
  refused(row(2), wired(11), blank(1, 1), {}, "2 blocks on 11 devices");
  refused(row(2), wired(2), blank(1, 1), {.device_order = {device_id(1), device_id(1)}}, "each of the 2 devices once");
  refused(row(2), wired(2), blank(1, 1), {.device_order = {device_id(1)}}, "device_order has 1 entries");
  refused(row(2), wired(2), blank(1, 1), {.max_stages = 0}, "max_stages = 0");
  refused(row(2), wired(2), blank(0, 1), {}, "microbatch_size 0");
  plan orders = blank(1, 1);
  orders.schedule.kind = schedule_kind::explicit_orders;
  refused(row(2), wired(2), orders, {}, "explicit orders");
  CHECK_THROWS_AS(best_of(row(2), wired(2), blank(1, 1), {}, minimize_latency{}, 0), invalid_input);
  CHECK(for_each_plan(layer_sequence{}, row(2), wired(2), roofline{}, plain_memory{}, blank(1, 1), {}, [](const plan&) {}) == 0);
}

}  // namespace test_brute_force
