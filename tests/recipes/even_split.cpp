// SPDX-License-Identifier: BSL-1.0
#include <hetplan/recipes/pipeline.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan_result.hpp>

#include "support/random_source.hpp"
#include "support/sound.hpp"

using namespace hetplan;

namespace {

planning_graph chain(const std::vector<double>& gflop, bytes weight = 1_MB) {
  planning_graph_builder b("chain");
  for (std::size_t i = 0; i < gflop.size(); ++i) {
    b.add_layer({.name = "l" + std::to_string(i), .forward_flops = 1_GFLOP * gflop[i], .weight = weight, .activation = 1_kB});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 10_kB);
  }
  return std::move(b).build();
}

/// Unequal devices: an even split sees nothing of it.
cluster devices_of(const std::vector<bytes>& memory) {
  std::vector<device> all;
  for (std::size_t d = 0; d < memory.size(); ++d) {
    all.push_back({.name = "d" + std::to_string(d), .memory = memory[d], .compute = 1_TFLOP_per_s * (1 + static_cast<double>(d % 3))});
  }
  return {"devices", all, shared_medium{400_Mbit_per_s, 1_ms}};
}

/// The least of all cuts into so many consecutive parts: the largest part's sum.
double least_largest(const std::vector<double>& work, std::size_t parts, std::size_t first = 0) {
  double least = std::numeric_limits<double>::infinity(), mine = 0;
  if (parts == 1) {
    for (std::size_t i = first; i < work.size(); ++i) mine += work[i];
    return mine;
  }
  for (std::size_t last = first + 1; last + parts - 1 <= work.size(); ++last) {
    mine += work[last - 1];
    least = std::min(least, std::max(mine, least_largest(work, parts - 1, last)));
  }
  return least;
}

}  // namespace

TEST_CASE("an even split uses every device in order, one stage each, and no cut has a smaller largest stage") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    INFO("seed " << seed);
    test::random_source random(seed * 31);
    const auto devices = static_cast<std::size_t>(random.integer(1, 4));
    std::vector<double> gflop;
    for (int n = random.integer(static_cast<int>(devices), 9); n > 0; --n)
      gflop.push_back(random.chance(0.3) ? random.integer(1, 3) : random.between(0.1, 8));
    const planning_graph model = chain(gflop);
    const cluster c = devices_of(std::vector<bytes>(devices, 1_GB * 100));
    for (const mode how : {mode::training, mode::inference}) {
      const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how}, .batch = 4}};
      const plan_result r = recipes::even_split(problem, minimize_latency{}, 100);
      test::require_sound(r, problem, minimize_latency{});
      REQUIRE(r.plans.size() == 3);  // one for each microbatch size
      for (const auto& [p, e] : r.plans) {
        REQUIRE(p.planner == "even-split");
        REQUIRE(p.stages.size() == devices);
        double largest = 0;
        int layer = 0;
        for (std::size_t s = 0; s < devices; ++s) {
          REQUIRE(p.stages[s].devices.size() == 1);
          REQUIRE(p.stages[s].devices.front().device == device_id(s));
          double mine = 0;
          for (const layer_id l : p.stages[s].layers) {
            REQUIRE(l.value == layer++);
            mine += gflop[l.index()];
          }
          largest = std::max(largest, mine);
        }
        REQUIRE(layer == static_cast<int>(gflop.size()));
        REQUIRE(largest == Approx(least_largest(gflop, devices)).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("memory moves an even split's cuts, and only as far as it must") {
  // Six equal layers of 100 MB, 400 MB with Adam. Even: two layers each; the second device holds but one.
  const planning_graph model = chain({1, 1, 1, 1, 1, 1}, 100_MB);
  const cluster c = devices_of({5_GB, 500_MB, 5_GB});
  const planning_problem problem{model, c, roofline{}, job{.batch = 1}};
  const plan_result r = recipes::even_split(problem, minimize_latency{});
  test::require_sound(r, problem, minimize_latency{});
  for (const auto& [p, e] : r.plans) {
    REQUIRE(p.stages.size() == 3);
    CHECK(p.stages[1].layers.size() == 1);
    CHECK(std::max(p.stages[0].layers.size(), p.stages[2].layers.size()) == 3);
  }
}

TEST_CASE("an even split that leaves a device out is no even split: too little memory on one, with the reason") {
  // The second device holds no layer at all; the others would hold everything.
  const planning_graph model = chain({1, 1, 1, 1}, 100_MB);
  const cluster c = devices_of({10_GB, 100_MB, 10_GB});
  const planning_problem problem{model, c, roofline{}, job{.batch = 2}};
  const plan_result r = recipes::even_split(problem, minimize_latency{});
  REQUIRE(r.status.result == outcome::none_found);
  CHECK(r.plans.empty());
  REQUIRE(r.binding.has_value());
  CHECK(r.binding->kind == limit_kind::memory);
  CHECK_THAT(r.status.reason, Catch::Contains("memory: ") && Catch::Contains("d1") && Catch::Contains("too much"));
}

TEST_CASE("a model of fewer layers than devices has no even split") {
  const planning_graph model = chain({1, 2});
  const cluster c = devices_of({10_GB, 10_GB, 10_GB});
  const planning_problem problem{model, c, roofline{}, job{.batch = 2}};
  const plan_result r = recipes::even_split(problem, minimize_latency{});
  REQUIRE(r.status.result == outcome::none_found);
  CHECK(r.plans.empty());
  CHECK_FALSE(r.status.reason.empty());
}

TEST_CASE("an even split takes all of many devices") {
  const planning_graph model = chain(std::vector<double>(40, 1));
  const cluster c = devices_of(std::vector<bytes>(20, 10_GB));
  const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = mode::inference}, .batch = 2}};
  const plan_result r = recipes::even_split(problem, minimize_latency{}, 1);
  REQUIRE(r.status.ok());
  REQUIRE(r.plans.front().plan.stages.size() == 20);
  for (const stage& s : r.plans.front().plan.stages) CHECK(s.layers.size() == 2);
}

TEST_CASE("an observer stops an even split with what it has") {
  const planning_graph model = chain({1, 2, 3, 4});
  const cluster c = devices_of({10_GB, 10_GB});
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const plan_result r = recipes::even_split(problem, minimize_latency{}, 10, [](const candidate_judged&) { return control::stop; });
  CHECK(r.status.result == outcome::stopped);
  CHECK(r.candidates == 1);
  CHECK(r.plans.size() == 1);
}
