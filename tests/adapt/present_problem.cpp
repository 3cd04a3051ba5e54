// SPDX-License-Identifier: BSL-1.0
// The problem of the moment says of a plan what the runner of the whole problem says under the same conditions.

#include <hetplan/adapt/environment.hpp>

#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/adapt/iteration.hpp>

#include "support/random_instance.hpp"

using namespace hetplan;
using namespace hetplan::test;

TEST_CASE("a plan goes in and out of the present problem and is judged there as it runs outside") {
  long long smaller = 0;
  for_random_instances(30, [&](const instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const planning_problem problem{model, c, roofline{}, job{.workload = i.plan.workload}};
    adapt::plan_runner runner(problem, i.plan);
    random_source random(i.layers.size() * 31 + i.devices.size());
    adapt::conditions now = adapt::nominal(c);
    for (const device& d : c.devices()) {
      if (!adapt::uses(runner.what(), d.id) && random.chance(0.5)) now.present[d.id.index()] = 0;
      now.speed[d.id.index()] = random.pick(std::vector<double>{0.25, 0.5, 1, 2});  // powers of two: to the last digit
    }
    if (i.plan.parameter_server) now.present[i.plan.parameter_server->index()] = 1;
    for (bytes_per_second& r : now.capacity) r = r * random.between(0.3, 2);
    const adapt::present_problem there(problem, now, {});
    CHECK(there.outside(there.inside(i.plan)) == i.plan);
    const evaluation e = judge(there.inside(i.plan), there->model, there->cluster, there->cost).evaluation;
    const adapt::iteration run = runner.rehearse(now);
    CHECK(e.latency.value() == run.took_s);
    CHECK(e.response().value() == run.response_s);
    CHECK(e.energy().value() == Approx(run.energy_J()).epsilon(1e-12));
    if (there->cluster.size() < c.size()) ++smaller;
  });
  CHECK(smaller > 20);
}

TEST_CASE("devices that stand still and ways that are down are left out, and somebody must be there") {
  const instance i = random_instance(3, plan_kind::chain);
  const planning_graph model = i.model();
  cluster both("both", {{.name = "x", .memory = 1_GB, .compute = 1_TFLOP_per_s}, {.name = "y", .memory = 1_GB, .compute = 1_TFLOP_per_s}},
               shared_medium{1_MB_per_s});
  const planning_problem problem{model, both, roofline{}, job{}};
  adapt::conditions now = adapt::nominal(both);
  now.capacity[0] = {};
  const adapt::present_problem cut(problem, now, {});
  CHECK(cut->cluster.size() == 2);
  CHECK(cut->cluster.network().find(device_id(0), device_id(1)) == nullptr);
  now.speed[0] = 0;
  const adapt::present_problem one(problem, now, {});
  REQUIRE(one->cluster.size() == 1);
  CHECK(one->cluster[device_id(0)].name == "y");
  now.present[1] = 0;
  CHECK_THROWS_AS((adapt::present_problem(problem, now, {})), invalid_input);
}
