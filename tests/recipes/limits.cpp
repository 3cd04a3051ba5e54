// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/recipes/alpa.hpp>
#include <hetplan/recipes/asteroid.hpp>
#include <hetplan/recipes/dapple.hpp>
#include <hetplan/recipes/gpipe.hpp>
#include <hetplan/recipes/metis.hpp>
#include <hetplan/recipes/pipedream.hpp>
#include <hetplan/solve/glpk.hpp>

#include "support/found_none.hpp"
#include "support/limited_job.hpp"

namespace test_limits {
using namespace hetplan;

TEST_CASE("dora finds a plan where one keeps the limits, and no planner calls such a job infeasible") {
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
      else REQUIRE_FALSE(find_broken_limit(*answer.plans.front().predicted, drawn.cluster));
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

}  // namespace test_limits
