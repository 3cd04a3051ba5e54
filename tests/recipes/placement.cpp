// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/cost/roofline.hpp>
#include <hetplan/exchange/placement_json.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/recipes/getf.hpp>
#include <hetplan/recipes/heft.hpp>
#include <hetplan/recipes/m_etf.hpp>
#include <hetplan/recipes/m_sct.hpp>
#include <hetplan/recipes/moirai.hpp>
#include <hetplan/recipes/on_device.hpp>
#include <hetplan/zoo/models.hpp>
#include <hetplan/zoo/settings.hpp>

namespace test_placement_recipes {

using namespace hetplan;
using Catch::Matchers::Contains;

job one_inference() { return {.workload = {.mode = mode::inference}, .batch = 1}; }

TEST_CASE("planners of operators answer with a plan that the simulator has judged, never slower than the best device alone") {
  const planning_graph model = zoo::model("resnet50", {});
  for (const auto name : {"smart-home-2", "edge-cluster"}) {
    const cluster home = zoo::cluster(name);
    const planning_problem problem{model, home, roofline{}, one_inference(), {}, {}, 50'000};
    const plan_result alone = recipes::on_device(problem, minimize_latency{}, 1);
    for (const place::contention c : place::all_contentions) {
      CAPTURE(name, to_string(c));
      const plan_result r = recipes::moirai(problem, minimize_latency{}, {.network = {c, transfer_copies::per_device}});
      REQUIRE(r.status.ok());
      const plan& p = r.plans.front();
      CHECK(p.planner == "moirai");
      CHECK(p.predicted->latency.value() <= alone.plans.front().predicted->latency.value() * (1 + 1e-9));
      CHECK(p.predicted->placement_bound.value() > 0);
      CHECK(p.predicted->placement_bound.value() <= p.predicted->latency.value() * (1 + 1e-9));
      const plan again = io::read_plan(io::json_document::parse(io::write_plan(p, model, home), "plan"), model, home);
      CHECK(again == p);
    }
    for (const auto planner : {recipes::heft, recipes::m_etf, recipes::m_sct, recipes::getf}) {
      const plan_result r = planner(problem, minimize_latency{}, {}, {});
      CHECK(r.status.ok());
    }
  }
}

TEST_CASE("Moirai fuses by TensorRT's rules unless told otherwise, and an observer ends it") {
  const planning_graph model = zoo::model("resnet50", {});
  const cluster home = zoo::cluster("smart-home-2");
  const planning_problem problem{model, home, roofline{}, one_inference(), {}, {}, 20'000};
  const auto stages = [&](const recipes::placement_view& view) {
    return recipes::moirai(problem, minimize_latency{}, view).plans.front().stages.size();
  };
  CHECK(stages({}) < model.size());
  CHECK(stages({.fusion = coarsen::no_fusion()}) == model.size());
  auto stop = [](const candidate_judged&) { return control::stop; };
  const plan_result r = recipes::moirai(problem, minimize_latency{}, {}, stop);
  CHECK(r.status.result == outcome::stopped);
  CHECK(r.plans.size() == 1);
}

TEST_CASE("a job that is no inference in one piece is infeasible, with the reason") {
  const planning_graph model = zoo::model("mobilenetv2", {});
  const cluster home = zoo::cluster("smart-home-2");
  CHECK_THAT(recipes::moirai({model, home, roofline{}, job{}}, minimize_latency{}).status.reason,
             Contains("moirai places the operators of one inference; the job is training"));
  job pieces = one_inference();
  pieces.batch = 8;
  pieces.microbatch_sizes = {2, 4};
  CHECK_THAT(recipes::heft({model, home, roofline{}, pieces}, minimize_latency{}).status.reason, Contains("runs the batch in one piece"));
  pieces.microbatch_sizes = {};
  CHECK(recipes::heft({model, home, roofline{}, pieces}, minimize_latency{}).status.ok());
}

TEST_CASE("a placement file names each layer's device and each device's order") {
  const planning_graph model = zoo::model("mobilenetv2", {});
  const cluster home = zoo::cluster("edge-cluster");
  const plan_result r = recipes::heft({model, home, roofline{}, one_inference()}, minimize_latency{});
  REQUIRE(r.status.ok());
  const io::json o = io::json::parse(exchange::write_placement(r.plans.front(), model, home));
  CHECK(o["placement"].size() == model.size());
  std::size_t listed = 0;
  for (const auto& [device, layers] : o["order"].items()) {
    listed += layers.size();
    for (const auto& l : layers) CHECK(o["placement"][l.get<std::string>()] == device);
  }
  CHECK(listed == model.size());
}

}  // namespace test_placement_recipes
