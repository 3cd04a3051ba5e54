// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/recipes/compare.hpp>

#include "support/three_devices.hpp"

using namespace hetplan;

TEST_CASE("compared planners keep their order and are measured against the best of them") {
  const planning_graph model = test::chain(9);
  const cluster c = test::three();
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  const auto none = [](const planning_problem&, const any_objective&) {
    return plan_result{.status = {outcome::infeasible, "nobody\ntried"}, .plans = {}};
  };
  const auto rows =
      recipes::compare(problem, minimize_latency{}, {{"on-device", recipes::on_device}, {"nothing", none}, {"dora", recipes::dora}});
  REQUIRE(rows.size() == 3);
  const double alone = recipes::on_device(problem, minimize_latency{}, 1).plans.front().evaluation.latency.value();
  CHECK(rows[0].planner == "on-device");
  CHECK(rows[0].score == alone);
  CHECK(rows[2].ratio == 1);
  CHECK(rows[0].ratio == alone / rows[2].score);
  CHECK(std::isinf(rows[1].ratio));

  const std::string table = recipes::to_table(rows);
  CHECK(std::count(table.begin(), table.end(), '\n') == 4);
  CHECK(table.rfind("planner    ", 0) == 0);
  CHECK(table.find("\nnothing    infeasible: nobody\\ntried\n") != std::string::npos);
  const std::size_t head = table.find('\n'), first = table.find('\n', head + 1) - head - 1;
  CHECK(first == head);  // aligned
}

TEST_CASE("nobody compared is an empty table with a head, and where no plan fits no ratio is a number") {
  const planning_graph model = test::chain(2);
  const cluster c = test::three();
  const planning_problem problem{model, c, roofline{}, job{.batch = 8}};
  CHECK(recipes::to_table(recipes::compare(problem, minimize_latency{}, {})) == "planner  latency  energy  ratio  candidates  elapsed\n");
  const auto none = [](const planning_problem&, const any_objective&) {
    return plan_result{.status = {outcome::infeasible, "no"}, .plans = {}};
  };
  CHECK(std::isnan(recipes::compare(problem, minimize_latency{}, {{"nothing", none}}).front().ratio));
}

TEST_CASE("the planners that ship are compared by name, and put their names on their plans") {
  const planning_graph model = test::chain(5);
  const cluster c = test::three();
  for (const mode how : {mode::training, mode::inference}) {
    const planning_problem problem{model, c, roofline{}, job{.workload = {.mode = how}, .batch = 4}};
    const auto rows = recipes::compare(problem, minimize_latency{}, recipes::all());
    REQUIRE(rows.size() == recipes::planners.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const recipes::known_planner& known = recipes::planners[i];
      CAPTURE(known.name, to_string(how));
      CHECK(rows[i].planner == known.name);
      CHECK_FALSE(known.about.empty());
      if (how == mode::inference || known.about.find(" only") == std::string_view::npos) REQUIRE(rows[i].result.status.ok());
      else if (known.place != nullptr) REQUIRE(rows[i].result.status.result == outcome::none_found);
      if (rows[i].result.status.ok()) CHECK(rows[i].result.plans.front().plan.planner.starts_with(known.name));
    }
  }
}
