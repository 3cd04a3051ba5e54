// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/baselines.hpp>
#include <hetplan/recipes/compare.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/found_none.hpp"
#include "support/limited_job.hpp"

namespace test_limits {
using namespace hetplan;

TEST_CASE("dora finds a plan where one keeps the limits, and no planner calls such a job infeasible", "[unsanitized]") {
  const auto first = test::first_seed();
  const std::vector<std::pair<const char*, recipes::named_planner::recipe>> others{
      {"on-device", recipes::on_device}, {"data-parallel", recipes::data_parallel},
      {"pipeline", recipes::pipeline},   {"gpipe", recipes::gpipe},
      {"pipedream", recipes::pipedream}, {"dapple", recipes::dapple},
      {"alpa", recipes::alpa},           {"metis", recipes::metis},
      {"asteroid", recipes::asteroid}};
  int feasible = 0, found = 0, proven = 0, none = 0;
  for (std::uint64_t seed = first; seed < first + 400; ++seed) {
    CAPTURE(seed);
    const test::limited_job drawn(test::random_source{seed});
    const auto problem = drawn.problem(glpk_lp{});
    const objective_of_job objective(drawn.job);
    const bool possible = drawn.any_plan().has_value();
    const plan_result r = recipes::dora(problem, objective, 1);
    feasible += possible;
    found += possible && !r.plans.empty();
    proven += r.status.result == outcome::infeasible;
    none += r.status.result == outcome::none_found;
    const auto check = [&](const plan_result& answer) {
      REQUIRE(answer.plans.empty() == !answer.status.ok());
      if (answer.plans.empty()) REQUIRE(test::found_none(answer.status));
      else REQUIRE_FALSE(find_broken_limit(answer.plans.front().evaluation, drawn.cluster));
      if (possible) REQUIRE(answer.status.result != outcome::infeasible);
    };
    check(r);
    for (const auto& [name, planner] : others) {
      if (seed % 4 != 0) break;
      CAPTURE(name);
      check(planner(problem, objective, 1, {}));
    }
  }
  CAPTURE(first, feasible, found, proven, none);
  CHECK(feasible > 100);
  CHECK(found == feasible);
  CHECK(proven > 50);
}

/// A job with a known feasible plan, drawn first. Limits are 2 % above its needs; devices that it does not use have no memory.
struct planted_job {
  planning_graph model;
  std::optional<cluster> tight = {};
  job wanted;

  explicit planted_job(test::random_source random) : model(random_chain(random)), wanted{.batch = 8} {
    wanted.workload.mode = random.chance(0.5) ? mode::training : mode::inference;
    std::vector<device> all;
    for (int i = 0; i < 4; ++i) {
      device d{.name = "d" + std::to_string(i), .memory = bytes(1e12), .compute = flops_per_second(random.between(1e11, 2e12))};
      d.power = {watts(random.between(0.5, 4)), watts(random.between(6, 30)), joules_per_byte(1e-8), joules_per_byte(1e-8)};
      d.half_batch = random.between(0, 2);
      all.push_back(std::move(d));
    }
    const shared_medium air{bytes_per_second(2.5e7), seconds(1e-3)};
    const cluster roomy("c", all, air);
    const int stages = random.integer(1, 3), used = random.integer(stages, 4), size = random.pick(std::vector{4, 8});
    const std::vector<int> layers = random.split(static_cast<int>(model.size()), stages), devices = random.split(used, stages);
    std::vector<std::size_t> order{0, 1, 2, 3};
    random.shuffle(order);
    const planning_problem problem{model, roomy, roofline{}, wanted};
    plan p = blank_plan(problem, "planted", size);
    std::size_t layer = 0, next = 0;
    for (std::size_t s = 0; s < layers.size(); ++s) {
      stage st{.name = "s" + std::to_string(s)};
      for (int i = 0; i < layers[s]; ++i) st.layers.emplace_back(layer++);
      for (const int share : random.split(size, devices[s])) st.devices.push_back({device_id(order[next++]), share});
      p.stages.push_back(std::move(st));
    }
    const evaluation e = judge(p, model, roomy, problem.cost, problem.models).evaluation;
    for (device& d : all) {
      const device_evaluation& x = e.devices[static_cast<std::size_t>(&d - all.data())];
      d.memory = bytes(1.02 * std::max(1e5, x.peak_memory.value()));
      if (!x.used) continue;
      d.energy_budget = joules(1.02 * x.energy.value());
      d.max_busy = std::min(1.0, 1.02 * (x.busy / e.latency));
    }
    tight.emplace("c", std::move(all), air);
  }

 private:
  static planning_graph random_chain(test::random_source& random) {
    planning_graph_builder b("m");
    for (int i = 0; i < 6; ++i) {
      b.add_layer({.name = "l" + std::to_string(i),
                   .forward_flops = flops(random.between(1e8, 2e9)),
                   .weight = bytes(random.between(0, 2e7)),
                   .activation = bytes(random.between(2e5, 4e6))});
      if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(random.between(1e4, 1e6)));
    }
    return std::move(b).build();
  }
};

TEST_CASE("dora finds a plan within limits that were cut for one", "[unsanitized]") {
  const auto first = test::first_seed();
  int found = 0;
  constexpr int count = 60;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    const planted_job drawn(test::random_source{seed});
    const planning_problem problem{drawn.model, *drawn.tight, roofline{}, drawn.wanted, {}, glpk_lp{}};
    const plan_result r = recipes::dora(problem, minimize_latency{}, 1);
    REQUIRE(r.status.result != outcome::infeasible);
    found += !r.plans.empty();
  }
  CAPTURE(first, found);
  CHECK(found >= count - 1);
}

TEST_CASE("a planner on a view keeps to its steps on many layers and devices, and cuts every layer where that is affordable") {
  planning_graph_builder b("long");
  for (int i = 0; i < 3000; ++i) {
    b.add_layer({.name = std::to_string(i), .forward_flops = flops(1e8 * (1 + i % 7)), .weight = bytes(1e5), .activation = bytes(1e4)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1e4 + i % 13));
  }
  const planning_graph model = std::move(b).build();
  CHECK(recipes::detail::affordable_row(model, 4, 16, standard_steps).size() == 3000);
  CHECK(recipes::detail::affordable_row(model, 300, 32, standard_steps).size() < 300);
  CHECK(recipes::detail::affordable_row(model, 300, 32, 1).size() <= 60);
  std::vector<device> many;
  for (int d = 0; d < 60; ++d)
    many.push_back({.name = std::to_string(d), .memory = bytes(1e9 + 1e6 * d), .compute = flops_per_second(1e12 + 1e9 * d)});
  const cluster c("many", std::move(many), shared_medium{bytes_per_second(1e8), seconds(0)});
  const planning_problem problem{model, c, roofline{}, job{.batch = 4}, {}, {}, 200'000};
  const plan_result r = recipes::asteroid(problem, minimize_latency{});
  REQUIRE(r.plans.size() == 1);
  CHECK(r.steps < 2 * problem.steps);
}

}  // namespace test_limits
