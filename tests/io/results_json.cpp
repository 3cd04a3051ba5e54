// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/json_text.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/results_json.hpp>

namespace test_results_json {

using namespace hetplan;
using parsed = nlohmann::json;

namespace {

planning_graph model() {
  planning_graph_builder b("toy");
  b.add_layer({.name = "a", .forward_flops = 1_GFLOP});
  return std::move(b).build();
}
cluster home() { return {"home", {{.name = "used", .memory = 1_GB}, {.name = "idle", .memory = 1_GB}}, mesh{1_MB_per_s}}; }
evaluation numbers() {
  evaluation e;
  e.latency = seconds(0.1 + 0.2);
  e.devices = {{true, 3_J, 2_MB, seconds(0.25)}, {}};
  e.resource_bytes = {5_B, 0_B};
  e.bound = seconds(0.2);
  e.gap = 0.5;
  e.schedule_bound = seconds(0.25);
  e.schedule_gap = 0.2;
  return e;
}
ranked_plan some_plan() {
  plan p{.model = "toy", .cluster = "home", .planner = "dora"};
  p.stages.push_back({"s0", {layer_id(0)}, {{device_id(0), 1, 1}}});
  return {p, numbers()};
}

}  // namespace

TEST_CASE("an evaluation lists the devices that are used and all resources") {
  evaluation e = numbers();
  const std::string text = io::write_evaluation(e, home());
  CHECK(parsed::parse(text) ==
        parsed::parse(R"({"latency": 0.30000000000000004, "energy": {"used": 3}, "peak_memory": {"used": 2000000}, "busy": {"used": 0.25},
    "span": {"used": 0}, "period": 0, "bytes": {"used->idle": 5, "idle->used": 0}, "bound": 0.2, "gap": 0.5, "schedule_bound": 0.25,
    "schedule_gap": 0.2})"));
  CHECK(text.find("\"latency\"") < text.find("\"energy\""));
  CHECK(text.find("\"bytes\"") < text.find("\"bound\""));
  e.time_between_tokens = seconds(0.125);
  CHECK(parsed::parse(io::write_evaluation(e, home()))["time_between_tokens"] == 0.125);
}

TEST_CASE("an evaluation lists all limits that it breaks, and none where it keeps them") {
  CHECK_FALSE(parsed::parse(io::write_evaluation(numbers(), home())).contains("broken_limits"));
  const cluster narrow{"home",
                       {{.name = "used", .memory = 1_MB, .energy_budget = 2_J, .max_busy = 0.5}, {.name = "idle", .memory = 1_MB}},
                       mesh{1_MB_per_s}};
  CHECK(parsed::parse(io::write_evaluation(numbers(), narrow))["broken_limits"] ==
        parsed::parse(R"([{"device": "used", "kind": "memory", "needs": 2000000, "may_use": 1000000},
                          {"device": "used", "kind": "energy", "needs": 3, "may_use": 2},
                          {"device": "used", "kind": "busy_share", "needs": 0.8333333333333333, "may_use": 0.5}])"));
}

TEST_CASE("a number that is not finite is left out") {
  evaluation e = numbers();
  e.gap = std::numeric_limits<double>::infinity();
  e.schedule_gap = std::numeric_limits<double>::quiet_NaN();
  const auto j = parsed::parse(io::write_evaluation(e, home()));
  CHECK_FALSE(j.contains("gap"));
  CHECK_FALSE(j.contains("schedule_gap"));
  CHECK(j.contains("schedule_bound"));
}

TEST_CASE("a planner's answer has its plans, best first, or the reason why there is none") {
  const plan_result found{.status = {}, .binding = {}, .plans = {some_plan(), some_plan()}, .candidates = 7, .elapsed = seconds(0.5)};
  const auto j = parsed::parse(io::write_plan_result(found, model(), home()));
  CHECK(j["status"] == "feasible");
  CHECK(j["reason"] == "");
  CHECK(j["plans"].size() == 2);
  CHECK(j["plans"][0]["predicted"]["latency"] == 0.1 + 0.2);
  CHECK(j["candidates"] == 7);
  CHECK(j["elapsed"] == 0.5);
  const plan_result none{
      .status = {outcome::infeasible, "memory: used needs 2 GB"}, .binding = {}, .plans = {}, .candidates = 3, .elapsed = {}};
  const auto k = parsed::parse(io::write_plan_result(none, model(), home()));
  CHECK(k["status"] == "infeasible");
  CHECK(k["reason"] == "memory: used needs 2 GB");
  CHECK(k["plans"] == parsed::array());
  CHECK_FALSE(k.contains("proof"));
  const plan_result proven{.status = {outcome::infeasible, "too much", infeasibility_proof{"plans", {{"bytes", 3, 2}}}}};
  CHECK(parsed::parse(io::write_plan_result(proven, model(), home()))["proof"] ==
        parsed::parse(R"({"of": "plans", "rows": [{"what": "bytes", "needed": 3, "available": 2}]})"));
  const plan_result searched{.status = {outcome::infeasible, "too much", infeasibility_proof{.of = "plans", .searched = 12}}};
  CHECK(parsed::parse(io::write_plan_result(searched, model(), home()))["proof"] == parsed::parse(R"({"of": "plans", "searched": 12})"));
}

TEST_CASE("a comparison has one row per planner") {
  const std::vector<io::comparison_row> rows{{"dora", {}, some_plan(), seconds(1), {}},
                                             {"gpipe", {outcome::none_found, "too much"}, {}, seconds(2), limit_kind::memory},
                                             {"alpa", {outcome::none_found, "too hot"}, {}, seconds(2), limit_kind::energy}};
  const auto j = parsed::parse(io::write_comparison(rows, model(), home()))["rows"];
  REQUIRE(j.size() == 3);
  CHECK(j[0]["planner"] == "dora");
  CHECK(j[0]["status"] == "feasible");
  CHECK(j[0]["energy"] == 3);
  CHECK(j[0]["peak_memory"] == 2000000);
  CHECK(j[0]["gap"] == 0.5);
  CHECK(j[0]["plan"]["format"] == "hetplan/plan/1");
  CHECK(j[1]["status"] == "out_of_memory");
  CHECK(j[1]["reason"] == "too much");
  CHECK_FALSE(j[1].contains("latency"));
  CHECK_FALSE(j[1].contains("plan"));
  CHECK(j[2]["status"] == "none found");
}

TEST_CASE("control characters of both blocks are escaped in documents and read back the same") {
  const std::string name = "\x1B[2J\n\x7F\u009B\u00A0\u00C4";
  const std::string text = io::json_text(io::json{{name, name}});
  CHECK(text == "{\"\\u001b[2J\\n\\u007F\\u009B\u00A0\u00C4\": \"\\u001b[2J\\n\\u007F\\u009B\u00A0\u00C4\"}\n");
  CHECK(io::json::parse(text) == io::json{{name, name}});
}

TEST_CASE("documents are laid out for people and end with a line break") {
  const std::string text = io::json_text(nlohmann::ordered_json::parse(R"({"a": [1, [2, {"b": null}]], "c": {}})"));
  CHECK(text == "{\"a\": [1, [2, {\"b\": null}]], \"c\": {}}\n");
  io::json j;
  for (int i = 0; i < 100; ++i) j["long"].push_back(i);
  j["short"] = 1;
  const std::string filled = io::json_text(j);
  CHECK(filled.starts_with("{\n  \"long\": [\n    0, 1, 2, "));
  CHECK(filled.ends_with("99\n  ],\n  \"short\": 1\n}\n"));
  CHECK(parsed::parse(filled) == parsed::parse(j.dump()));
  j["bad"] = "\xFF";
  CHECK_NOTHROW(io::json_text(j));
}

}  // namespace test_results_json
