// SPDX-License-Identifier: BSL-1.0
// The grid of the search against enumeration of all grids.

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include <catch2/catch.hpp>

#include <hetplan/partition/best_grid.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/evaluate.hpp>

#include "support/by_hand.hpp"
#include "support/random_source.hpp"

namespace test_best_grid {

using namespace hetplan;
using namespace hetplan::test;
using partition::best_grid;
using partition::found_grid;
using partition::grid_judge;
using partition::grid_options;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns the latency of the plan whose only stage is s; infinity if that plan is invalid.
double latency_s(const planning_problem& problem, const stage& s, int size) {
  plan p = blank_plan(problem, "test", size);
  p.stages = {s};
  if (validate(p, problem.model, problem.cluster)) return inf;
  try {
    const evaluation e = judge(p, problem.model, problem.cluster, problem.cost, problem.models).evaluation;
    return find_broken_limit(e, problem.cluster) ? inf : e.latency.value();
  } catch (const missing_route&) {
    return inf;
  }
}

grid_judge judge_of(const planning_problem& problem, int size) {
  const double passes = problem.job.batch / size * pass_count(problem.job.workload, problem.model.tokens_per_sample());
  return {[&problem, size](const stage& s) { return latency_s(problem, s, size); }, [passes](double busy_s) { return passes * busy_s; }};
}

stage all_of(const planning_graph& m) {
  stage s{.name = "all"};
  for (const layer& l : m.layers()) s.layers.push_back(l.id);
  return s;
}

std::vector<device_id> all_devices(const cluster& c) {
  std::vector<device_id> all;
  for (const device& d : c.devices()) all.push_back(d.id);
  return all;
}

/// Returns the least latency over all shapes, device orders, whole-sample rows, and column weights up to `most`.
double least(const planning_problem& problem, int size, bool subsets, int most) {
  const stage blank = all_of(problem.model);
  const std::size_t n = problem.cluster.size();
  double best = inf;
  const auto try_rows = [&](const std::vector<device_id>& order, const std::vector<int>& columns) {
    const std::size_t rows = order.size() / columns.size();
    std::vector<int> samples;
    const std::function<void(int)> cut = [&](int left) {
      if (samples.size() == rows) {
        if (left > 0) return;
        stage s = blank;
        for (std::size_t i = 0; i < order.size(); ++i) s.devices.push_back({order[i], samples[i / columns.size()]});
        s.columns = columns;
        best = std::min(best, latency_s(problem, s, size));
        return;
      }
      for (int b = 1; b <= left; ++b) {
        samples.push_back(b);
        cut(left - b);
        samples.pop_back();
      }
    };
    cut(size);
  };
  const auto try_order = [&](const std::vector<device_id>& order) {
    for (std::size_t c = 1; c <= order.size(); ++c) {
      if (order.size() % c != 0) continue;
      std::vector<int> columns(c, 1);
      const std::function<void(std::size_t)> weigh = [&](std::size_t at) {
        if (at == c) return try_rows(order, columns);
        for (columns[at] = 1; columns[at] <= (c == 1 ? 1 : most); ++columns[at]) weigh(at + 1);
      };
      weigh(0);
    }
  };
  std::vector<device_id> order;
  const std::function<void()> extend = [&] {
    if (!order.empty() && (subsets || order.size() == n)) try_order(order);
    for (std::size_t d = 0; d < n; ++d) {
      if (std::find(order.begin(), order.end(), device_id(d)) != order.end()) continue;
      order.push_back(device_id(d));
      extend();
      order.pop_back();
    }
  };
  extend();
  return best;
}

/// Returns a random model of small whole numbers, which cause ties.
planning_graph drawn_model(random_source& random) {
  planning_graph_builder b("drawn");
  const int layers = random.integer(1, 8);
  for (int l = 0; l < layers; ++l) {
    const auto split = random.pick(std::vector{layer_split::none, layer_split::rows, layer_split::columns, layer_split::along});
    layer_spec s{.name = "l" + std::to_string(l),
                 .forward_flops = flops(random.integer(0, 6)),
                 .weight = bytes(split == layer_split::along ? 0 : random.integer(0, 6)),
                 .activation = bytes(random.integer(0, 3)),
                 .traffic = bytes(random.integer(0, 2)),
                 .kv_bytes_per_token = bytes(random.integer(0, 1))};
    s.split = split;
    if (random.chance(0.3)) s.split_units = random.pick(std::vector{2, 4, 6, 8, 12});
    b.add_layer(std::move(s));
    if (l > 0) b.add_edge(layer_id(l - 1), layer_id(l), bytes(random.integer(0, 3)));
    if (l > 2 && random.chance(0.2)) b.add_edge(layer_id(l - 3), layer_id(l), bytes(random.integer(0, 3)));
  }
  return std::move(b).build();
}

cluster drawn_cluster(random_source& random, int devices) {
  std::vector<device> all;
  const bool tight = random.chance(0.4), moves = random.chance(0.5);
  for (int d = 0; d < devices; ++d) {
    device x = worker("d" + std::to_string(d), random.integer(1, 4));
    x.memory_bandwidth = bytes_per_second(moves ? random.integer(1, 3) : 1e15);
    x.half_batch = random.integer(0, 1);
    if (tight) x.memory = bytes(random.integer(10, 120));
    all.push_back(x);
  }
  if (random.chance(0.5))
    return {"drawn", std::move(all), mesh{bytes_per_second(random.pick(std::vector{1, 4, 100})), seconds(random.chance(0.5) ? 0 : 0.25)}};
  if (random.chance(0.3))
    return {"drawn", std::move(all), shared_medium{bytes_per_second(random.pick(std::vector{2, 100})), seconds(0.125)}};
  route_table table;
  for (int a = 0; a < devices; ++a) {
    for (int b = 0; b < devices; ++b) {
      if (a == b || random.chance(0.03)) continue;
      table.listed.push_back({std::to_string(a) + "-" + std::to_string(b), bytes_per_second(random.integer(1, 20))});
      const seconds latency(random.integer(0, 2) * 0.25);
      table.rules.push_back({"d" + std::to_string(a), "d" + std::to_string(b), {latency, {{resource_id(table.listed.size() - 1), 1}}}});
    }
  }
  return {"drawn", std::move(all), std::move(table)};
}

}  // namespace

TEST_CASE("the search finds the best of all grids of up to four devices and eight layers", "[long]") {
  int grids = 0, infeasible = 0, finer = 0;
  long long judged = 0;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 240; ++seed) {
    random_source random(seed);
    const planning_graph m = drawn_model(random);
    const int devices = random.pick(std::vector{1, 2, 3, 3, 4, 4});
    const cluster c = drawn_cluster(random, devices);
    job wanted;
    wanted.workload.mode = random.pick(std::vector{mode::training, mode::inference, mode::generation});
    wanted.workload.context = random.integer(0, 4);
    wanted.workload.tokens = random.integer(2, 4);
    const int size = devices == 4 ? random.integer(1, 4) : random.integer(1, 6);
    wanted.batch = size * random.integer(1, 3);
    const planning_problem problem{m, c, roofline{}, wanted};
    grid_options options{
        .subsets = random.chance(0.4), .alone = random.chance(0.7), .all_up_to = 1e9, .judged = random.chance(0.5) ? 0 : 200};
    const auto found = best_grid(problem, all_of(m), all_devices(c), size, judge_of(problem, size), options);
    const double expected = least(problem, size, options.subsets, 4);
    INFO("seed " << seed);
    REQUIRE(found.has_value() == (expected < inf));
    if (!found) {
      ++infeasible;
      continue;
    }
    CHECK(found->exact);
    CHECK(found->score == Approx(latency_s(problem, found->stage, size)).epsilon(1e-12));
    // The search also tries weights above 4, which `least` leaves out.
    const auto& columns = found->stage.columns;
    const bool fine = std::any_of(columns.begin(), columns.end(), [](int w) { return w > 4; });
    finer += fine ? 1 : 0;
    CHECK((fine ? found->score <= expected * (1 + 1e-9) : found->score == Approx(expected).epsilon(1e-9)));
    grids += found->stage.column_count() > 1 ? 1 : 0;
    judged += found->judged;
  }
  WARN(grids << " grids, " << infeasible << " infeasible, " << finer << " with finer weights, " << judged << " judged");
  CHECK(grids >= 40);
  CHECK(infeasible >= 5);
}

TEST_CASE("capacities 1 : 2 : 2 : 4 are a grid of two rows 1, 2 and two columns 1, 2") {
  const planning_graph m = [] {
    planning_graph_builder b("one layer");
    b.add_layer({.name = "work", .forward_flops = flops(3e9), .weight = bytes(4e6), .traffic = bytes{}});
    b.add_layer({.name = "end", .forward_flops = flops(0), .traffic = bytes{}});
    b.add_edge("work", "end", bytes(1e3));
    return std::move(b).build();
  }();
  std::vector<device> devices;
  for (const double tera : {1, 2, 2, 4}) {
    devices.push_back(worker("d" + std::to_string(devices.size()), tera * 1e12));
    devices.back().memory_bandwidth = bytes_per_second(1e15);
  }
  const cluster c("lan", std::move(devices), mesh{bytes_per_second(1e18), seconds(0)});
  job wanted{.batch = 3};
  wanted.workload.mode = mode::inference;
  const planning_problem problem{m, c, roofline{}, wanted};
  for (const double all_up_to : {0.0, 1e6}) {
    const auto found = best_grid(problem, all_of(m), all_devices(c), 3, judge_of(problem, 3), {.all_up_to = all_up_to});
    REQUIRE(found);
    CHECK(found->exact == (all_up_to > 0));
    CHECK(found->score == Approx(1e-3));
    CHECK(found->stage.columns == std::vector{1, 2});
    CHECK(found->stage.row(0).samples == 1);
    CHECK(found->stage.row(1).samples == 2);
  }
}

TEST_CASE("the steps come near the best of all grids") {
  int exact = 0, all = 0, none = 0;
  double worst = 1;
  for (std::uint64_t seed = first_seed(); seed < first_seed() + 200; ++seed) {
    random_source random(seed);
    const planning_graph m = drawn_model(random);
    const cluster c = drawn_cluster(random, random.integer(2, 4));
    job wanted;
    wanted.workload.mode = random.pick(std::vector{mode::training, mode::inference, mode::generation});
    const int size = random.integer(1, 8);
    wanted.batch = size;
    const planning_problem problem{m, c, roofline{}, wanted};
    const auto best = best_grid(problem, all_of(m), all_devices(c), size, judge_of(problem, size), {.subsets = true, .all_up_to = 1e9});
    const auto near = best_grid(problem, all_of(m), all_devices(c), size, judge_of(problem, size), {.subsets = true, .all_up_to = 0});
    if (!best) continue;
    ++all;
    INFO("seed " << seed);
    if (!near) {
      ++none;
      continue;
    }
    CHECK(near->judged <= 200);
    exact += near->score <= best->score * (1 + 1e-9) ? 1 : 0;
    if (best->score > 0) worst = std::max(worst, near->score / best->score);
  }
  WARN(exact << " of " << all << " the best, the worst " << worst << ", none in " << none);
  CHECK(exact >= 0.8 * all);
  CHECK(none <= 0.02 * all);
}

TEST_CASE("bad input to the search of a grid throws") {
  random_source random(1);
  const planning_graph m = drawn_model(random);
  const cluster c = drawn_cluster(random, 2);
  const planning_problem problem{m, c, roofline{}, job{.batch = 1}};
  const grid_judge judge = judge_of(problem, 1);
  CHECK_THROWS_AS(best_grid(problem, all_of(m), {}, 1, judge), invalid_input);
  CHECK_THROWS_AS(best_grid(problem, all_of(m), {device_id(0), device_id(0)}, 1, judge), invalid_input);
  CHECK_THROWS_AS(best_grid(problem, all_of(m), all_devices(c), 0, judge), invalid_input);
  CHECK_THROWS_AS(best_grid(problem, all_of(m), all_devices(c), 1, judge, {.largest_weight = 0}), invalid_input);
}

}  // namespace test_best_grid
