// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/io/cluster_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/plan_json.hpp>
#include <hetplan/io/tasks_json.hpp>
#include <hetplan/plan/stage_graph.hpp>

#include "support/by_hand.hpp"
#include "support/random_instance.hpp"

using namespace hetplan;
using nlohmann::json;

namespace {

json written(const test::instance& i) {
  const planning_graph model = i.model();
  const cluster c = i.cluster();
  return json::parse(io::write_tasks(i.plan, model, c, judge(i.plan, model, c, roofline{})));
}

/// Returns how much of [first, last) the pieces leave out or hold twice.
long long left_out(long long first, long long last, std::vector<std::pair<long long, long long>> pieces) {
  std::sort(pieces.begin(), pieces.end());
  long long wrong = 0;
  for (const auto& [begin, end] : pieces) {
    wrong += std::abs(begin - first);
    first = end;
  }
  return wrong + std::abs(last - first);
}

/// A walk over the document, as by an executor: what a task needs must exist, in order, and end before it starts.
class walk {
 public:
  explicit walk(const json& document) : d(document) {}

  void check() const {
    std::vector<int> times_ordered(d["tasks"].size(), 0);
    for (const json& device : d["devices"]) {
      double before = 0;
      for (const std::size_t t : device["order"]) {
        ++times_ordered[t];
        CHECK(d["tasks"][t]["device"] == device["name"]);
        CHECK(start("tasks", t) >= before - 1e-9);
        before = end("tasks", t);
      }
    }
    CHECK(std::all_of(times_ordered.begin(), times_ordered.end(), [](int n) { return n == 1; }));
    for (std::size_t t = 0; t < d["tasks"].size(); ++t) check_task(t);
    for (std::size_t t = 0; t < d["transfers"].size(); ++t) check_transfer(t);
    double last = 0;
    for (const char* what : {"tasks", "transfers"}) {
      for (const json& when : d["predicted"][what]) last = std::max(last, when[1].get<double>());
    }
    CHECK(last == d["predicted"]["latency"].get<double>());
  }

 private:
  double start(const char* what, std::size_t n) const { return d["predicted"][what][n][0]; }
  double end(const char* what, std::size_t n) const { return d["predicted"][what][n][1]; }

  void check_task(std::size_t n) const {
    const json& t = d["tasks"][n];
    CHECK(end("tasks", n) - start("tasks", n) == Approx(t["seconds"].get<double>()).margin(1e-9));
    // Inputs from other stages cover the task's samples, stage by stage.
    std::map<int, std::vector<std::pair<long long, long long>>> arrives;
    for (const std::size_t other : t["needs"]) {
      const json& o = d["tasks"][other];
      CHECK(o["device"] == t["device"]);
      CHECK(end("tasks", other) <= start("tasks", n) + 1e-9);
      const auto piece = both(o["samples"], t["samples"]);
      CHECK(piece.first < piece.second);
      if (o["stage"] == t["stage"] && o["step"] == t["step"]) {
        CHECK(o["phase"] == (t["phase"] == "B" ? "F" : "B"));
        CHECK(o["samples"] == t["samples"]);
      } else {
        CHECK(o["phase"] == t["phase"]);
        arrives[o["stage"]].push_back(piece);
      }
    }
    for (const json& x : d["transfers"]) {
      if (!x.contains("consumer") || x["consumer"] != n || x["chunk"] != 0) continue;
      arrives[x["from_stage"]].push_back(both(x["samples"], x["samples"]));
    }
    for (const auto& [stage, pieces] : arrives) CHECK(left_out(t["samples"][0], t["samples"][1], pieces) == 0);
  }

  void check_transfer(std::size_t n) const {
    const json& x = d["transfers"][n];
    CHECK(start("transfers", n) >= x["release"].get<double>() - 1e-9);
    const auto is_route = [&](const json& r) { return r["from"] == x["from"] && r["to"] == x["to"]; };
    CHECK(std::count_if(d["routes"].begin(), d["routes"].end(), is_route) == 1);
    REQUIRE(x["chunk"] < x["of"]);
    if (x["chunk"] > 0) {
      const json& before = d["transfers"][n - 1];
      for (const char* key : {"kind", "from", "to", "from_stage", "to_stage", "microbatch", "step", "samples", "bytes", "of"}) {
        CHECK(before[key] == x[key]);
      }
      CHECK(before["chunk"].get<int>() + 1 == x["chunk"].get<int>());
      CHECK(end("transfers", n - 1) <= start("transfers", n) + 1e-9);
    } else if (x["of"] > 1) {
      CHECK(d["transfers"][n + x["of"].get<std::size_t>() - 1]["chunk"] == x["of"].get<int>() - 1);
    }
    CHECK(x.contains("producer") == (x["kind"] != "sync"));
    CHECK(x.contains("consumer") == (x["kind"] != "sync"));
    if (x["kind"] == "sync") return;
    const json &from = d["tasks"][x["producer"].get<std::size_t>()], &to = d["tasks"][x["consumer"].get<std::size_t>()];
    CHECK(from["device"] == x["from"]);
    CHECK(to["device"] == x["to"]);
    CHECK(from["stage"] == x["from_stage"]);
    CHECK(to["stage"] == x["to_stage"]);
    CHECK(from["phase"] == (x["kind"] == "backward" ? "B" : "F"));
    CHECK(to["phase"] == from["phase"]);
    CHECK(both(from["samples"], to["samples"]) == both(x["samples"], x["samples"]));
    CHECK(end("tasks", x["producer"]) <= start("transfers", n) + 1e-9);
    CHECK(end("transfers", n) <= start("tasks", x["consumer"]) + 1e-9);
  }

  static std::pair<long long, long long> both(const json& a, const json& b) {
    const auto number = [](const json& n) { return n.get<long long>(); };
    return {std::max(number(a[0]), number(b[0])), std::min(number(a[1]), number(b[1]))};
  }

  const json& d;
};

/// Returns the property names of every object of the schema; "" is the document.
std::map<std::string, std::set<std::string>> properties(const json& schema, const char* which) {
  std::map<std::string, std::set<std::string>> all;
  const auto add = [&](const std::string& name, const json& object) {
    if (!object.contains("properties")) return;
    CHECK(object["additionalProperties"] == false);
    for (const auto& [key, value] : object["properties"].items()) all[name].insert(key);
    if (std::string(which) == "all") return;
    all[name].clear();
    for (const auto& key : object["required"]) all[name].insert(key.get<std::string>());
  };
  add("", schema);
  for (const auto& [name, object] : schema["$defs"].items()) add(name, object);
  return all;
}

}  // namespace

TEST_CASE("an executor can walk along a tasks file: what a task waits for is there and ends before it starts") {
  test::for_random_instances(8, [](const test::instance& i) { walk(written(i)).check(); });
}

TEST_CASE("a tasks file has the plan's graph, number for number") {
  test::for_random_instances(8, [](const test::instance& i) {
    const planning_graph model = i.model();
    const cluster c = i.cluster();
    const judgement j = judge(i.plan, model, c, roofline{});
    const json d = json::parse(io::write_tasks(i.plan, model, c, j));
    REQUIRE(d["tasks"].size() == j.graph.computes.size());
    REQUIRE(d["transfers"].size() == j.graph.transfers.size());
    for (std::size_t t = 0; t < j.graph.computes.size(); ++t) {
      CHECK(d["tasks"][t]["seconds"].get<double>() == j.graph.computes[t].duration_s);
      CHECK(d["predicted"]["tasks"][t] == json::array({j.trace.computes[t].start_s, j.trace.computes[t].end_s}));
    }
    for (std::size_t t = 0; t < j.graph.transfers.size(); ++t) {
      const tasks::transfer& x = j.graph.transfers[t];
      CHECK(d["transfers"][t]["bytes"].get<double>() == x.volume_bytes);
      CHECK(d["transfers"][t]["priority"] == x.priority);
      const json& way = *std::find_if(d["routes"].begin(), d["routes"].end(),
                                      [&](const json& r) { return r["from"] == c[x.from].name && r["to"] == c[x.to].name; });
      const route& expected = *c.network().find(x.from, x.to);
      CHECK(way["latency"].get<double>() == expected.latency.value());
      REQUIRE(way["via"].size() == expected.via.size());
      for (std::size_t u = 0; u < expected.via.size(); ++u) {
        CHECK(way["via"][u]["resource"] == c.network()[expected.via[u].resource].name);
        CHECK(way["via"][u]["weight"].get<double>() == expected.via[u].weight);
      }
    }
    CHECK(d["batch"] == i.plan.batch());
    CHECK(d["predicted"]["latency"].get<double>() == j.evaluation.latency.value());
    // Training lists every reduction of the plan.
    const bool training = i.plan.workload.mode == mode::training;
    CHECK(d["reductions"].size() == (training ? reductions_of(i.plan, model).size() : 0));
  });
}

TEST_CASE("a tasks file is refused before a plan of millions of tasks is expanded") {
  const planning_graph model = test::model_of({test::work_of("a", 1), test::work_of("b", 1)}, {{0, 1, 2, 2}});
  hetplan::plan p = test::plan_of(mode::inference, 1, 333'333, {test::stage_of({0}, {{0, 1}}), test::stage_of({1}, {{1, 1}})});
  CHECK_NOTHROW(io::require_tasks_file(p, model));
  p.microbatches = 333'334;
  CHECK_THROWS_WITH(
      io::require_tasks_file(p, model),
      "export to tasks: plan: /microbatches: expected at most 1e+06 tasks and transfers, got 666668 tasks and 333334 transfers");
}

TEST_CASE("a plan whose transfers block has no tasks file") {
  const planning_graph model = test::model_of({test::work_of("a", 1), test::work_of("b", 1)}, {{0, 1, 2, 2}});
  hetplan::plan p = test::plan_of(mode::inference, 1, 1, {test::stage_of({0}, {{0, 1}}), test::stage_of({1}, {{1, 1}})});
  p.transfers = transfer_mode::block;
  const cluster c = test::wired(2);
  CHECK_THROWS_WITH(io::write_tasks(p, model, c, judge(p, model, c, roofline{})),
                    Catch::Contains("/transfers") && Catch::Contains("\"block\""));
}

TEST_CASE("plans that no executor runs have no tasks file") {
  const planning_graph model = test::model_of({test::work_of("a", 1), test::work_of("b", 1)}, {{0, 1, 2, 2}});
  const hetplan::plan plain = test::plan_of(mode::training, 2, 1, {test::stage_of({0, 1}, {{0, 1}, {1, 1}})});
  CHECK_NOTHROW(io::require_tasks_file(plain, model));
  const auto refused = [&](const std::function<void(stage&)>& change, const char* why) {
    hetplan::plan p = plain;
    change(p.stages[0]);
    CHECK_THROWS_WITH(io::require_tasks_file(p, model), "export to tasks: stage \"\" is " + std::string(why) +
                                                            "; expected stages whose devices share microbatches by samples alone");
  };
  refused([](stage& s) { s.columns = {1, 1}; }, "a grid, whose columns share tensors");
  refused([](stage& s) { s.shard = sharding::zero2; }, "under zero2, which scatters gradients after each microbatch");
  refused([](stage& s) { s.shard = sharding::fsdp; }, "under fsdp, which gathers weights before each use");
  hetplan::plan cut = plain;
  cut.stages[0].cuts = {.forward = {0, 2}, .backward = {0, 2}};
  CHECK_NOTHROW(io::require_tasks_file(cut, model));
  cut.stages[0].cuts.backward = {0, 1, 2};
  CHECK_THROWS_WITH(io::require_tasks_file(cut, model),
                    "export to tasks: stage \"\" has backward passes of other samples than its forward passes; expected the same samples");
}

TEST_CASE("a tasks file by hand: two stages, the second replicated and in chunks, tied to the first") {
  planning_graph_builder b("two");
  b.add_layer({.name = "a", .forward_flops = flops(1), .weight = bytes(6), .weight_group = "t"});
  b.add_layer({.name = "b", .forward_flops = flops(2), .weight = bytes(4)});
  b.add_layer({.name = "c", .forward_flops = flops(1), .weight = bytes(6), .weight_group = "t"});
  b.add_edge("a", "b", bytes(5), bytes(0));
  b.add_edge("b", "c", bytes(5));
  const planning_graph model = std::move(b).build();
  hetplan::plan p = test::plan_of(mode::training, 3, 1, {test::stage_of({0}, {{0, 3}}), test::stage_of({1, 2}, {{1, 2}, {2, 1}})});
  p.stages[0].name = "first";
  p.stages[1].name = "second";
  p.sharing_policy = sharing::priority;
  for (int k = 0; k < 2; ++k) {
    p.schedule.transfers.push_back({.from = device_id(0),
                                    .to = device_id(1),
                                    .from_stage = stage_id(0),
                                    .to_stage = stage_id(1),
                                    .chunk = k,
                                    .chunks = 2,
                                    .release = seconds(k),
                                    .priority = k});
  }
  const cluster c = test::wired(3, 0.5, 10);
  const json d = json::parse(io::write_tasks(p, model, c, judge(p, model, c, roofline{})));

  CHECK(d["format"] == "hetplan/tasks/1");
  CHECK(d["network"] == "priority");
  CHECK(d["devices"] == json::parse(R"([{"name": "d0", "kind": "d0", "order": [0, 1]}, {"name": "d1", "kind": "d1", "order": [2, 3]},
                                        {"name": "d2", "kind": "d2", "order": [4, 5]}])"));
  CHECK(d["stages"][1] == json::parse(R"({"name": "second", "layers": ["b", "c"], "microbatch_size": 3, "microbatches": 1,
    "devices": [{"name": "d1", "samples": 2, "tensor_parallel": 1}, {"name": "d2", "samples": 1, "tensor_parallel": 1}]})"));
  CHECK(d["tasks"][3] ==
        json::parse(R"({"device": "d1", "phase": "B", "stage": 1, "microbatch": 0, "step": 0, "samples": [0, 2], "seconds": 12,
    "needs": [2]})"));
  CHECK(d["transfers"][1] ==
        json::parse(R"({"kind": "forward", "from": "d0", "to": "d1", "from_stage": 0, "to_stage": 1, "microbatch": 0, "step": 0,
    "samples": [0, 2], "bytes": 5, "chunk": 1, "of": 2, "release": 1, "priority": 1, "producer": 0, "consumer": 2})"));
  CHECK(d["transfers"][2] ==
        json::parse(R"({"kind": "forward", "from": "d0", "to": "d2", "from_stage": 0, "to_stage": 1, "microbatch": 0, "step": 0,
    "samples": [2, 3], "bytes": 5, "chunk": 0, "of": 1, "release": 0, "priority": 0, "producer": 0, "consumer": 4})"));
  CHECK(d["routes"][0] == json::parse(R"({"from": "d0", "to": "d1", "latency": 0.5, "via": [{"resource": "d0->d1", "weight": 1}]})"));
  CHECK(d["reductions"] == json::parse(R"([
    {"devices": ["d1", "d2"], "stages": [1, 1], "holders": [1], "layers": ["b", "c"], "bytes": 10},
    {"devices": ["d0", "d1"], "stages": [0, 1], "holders": [0, 1], "layers": ["a"], "bytes": 6}])"));
}

TEST_CASE("an optimizer step and a parameter server are named") {
  struct with_step {
    [[nodiscard]] seconds time(const work& w, const device& d) const { return roofline{}.time(w, d); }
    [[nodiscard]] seconds optimizer_step(const layer&, const device&) const { return seconds(1); }
  };
  planning_graph_builder b("one");
  b.add_layer({.name = "a", .forward_flops = flops(1), .weight = bytes(6)});
  const planning_graph model = std::move(b).build();
  hetplan::plan p = test::plan_of(mode::training, 2, 1, {test::stage_of({0}, {{0, 1}, {1, 1}})});
  p.parameter_server = device_id(1);
  const cluster c = test::wired(2);
  const json d = json::parse(io::write_tasks(p, model, c, judge(p, model, c, with_step{})));
  CHECK(d["parameter_server"] == "d1");
  CHECK(d["devices"][0]["order"] == json::array({0, 1, 4}));
  CHECK(d["tasks"][4]["phase"] == "U");
  CHECK(d["tasks"][4]["needs"].empty());  // waits for the stage's reductions
}

TEST_CASE("a tasks file says which stages recompute and share out their optimizer's state, and times are what that makes of them") {
  const planning_graph model = test::model_of({test::work_of("a", 2, 3, 4)}, {});
  hetplan::plan p = test::plan_of(mode::training, 2, 1, {test::stage_of({0}, {{0, 1}, {1, 1}})});
  const cluster c = test::wired(2);
  const json before = json::parse(io::write_tasks(p, model, c, judge(p, model, c, roofline{})));
  CHECK_FALSE(before["stages"][0].contains("recompute"));
  CHECK_FALSE(before["stages"][0].contains("shard_state"));
  p.stages[0].recompute = recomputation::stage;
  p.stages[0].shard = sharding::state;
  const json d = json::parse(io::write_tasks(p, model, c, judge(p, model, c, roofline{})));
  CHECK(d["stages"][0]["recompute"] == true);
  CHECK(d["stages"][0]["shard_state"] == true);
  CHECK(d["tasks"][1]["phase"] == "B");
  CHECK(d["tasks"][1]["seconds"] == 2 + 3 + 4);
}

TEST_CASE("the tasks file of the reference page is what its model, cluster and stages give") {
  const std::string page = io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/files.md");
  std::map<std::string, std::string> first;  // example by format
  for (std::size_t at = page.find("```json\n"); at != std::string::npos; at = page.find("```json\n", at + 1)) {
    const std::string text = page.substr(at + 8, page.find("```", at + 8) - at - 8);
    first.emplace(json::parse(text, nullptr, true, true)["format"], text);
  }
  const json shown = json::parse(first.at("hetplan/tasks/1"));
  const planning_graph model = io::read_model(io::json_document::parse(first.at("hetplan/model/1"), "files.md"));
  const cluster home = io::read_cluster(io::json_document::parse(first.at("hetplan/cluster/1"), "files.md"));
  json as_plan{{"format", "hetplan/plan/1"}};
  for (const char* key : {"model", "cluster", "planner", "mode"}) as_plan[key] = shown[key];
  for (const char* key : {"microbatch_size", "microbatches"}) as_plan[key] = shown["stages"][0][key];
  for (const json& s : shown["stages"])
    as_plan["stages"].push_back({{"name", s["name"]}, {"layers", s["layers"]}, {"devices", s["devices"]}});
  const hetplan::plan p = io::read_plan(io::json_document::parse(as_plan.dump(), "files.md"), model, home).plan;
  CHECK(json::parse(io::write_tasks(p, model, home, judge(p, model, home, profiled_or_roofline{}))) == shown);
}

TEST_CASE("the schema of a tasks file describes the keys that are written") {
  const json schema = json::parse(io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/tasks.schema.json"));
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["properties"]["format"]["const"] == "hetplan/tasks/1");
  std::map<std::string, std::set<std::string>> seen, always;
  const auto see = [&](const std::string& name, const json& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.insert(key);
    seen[name].insert(keys.begin(), keys.end());
    const auto [known, fresh] = always.emplace(name, keys);
    if (!fresh) std::erase_if(known->second, [&](const std::string& key) { return !keys.contains(key); });
  };
  test::for_random_instances(8, [&](const test::instance& i) {
    const json d = written(i);
    see("", d);
    see("predicted", d["predicted"]);
    for (const auto& [list, name] : std::map<std::string, std::string>{{"devices", "device"},
                                                                       {"resources", "resource"},
                                                                       {"routes", "route"},
                                                                       {"stages", "stage"},
                                                                       {"tasks", "task"},
                                                                       {"transfers", "transfer"},
                                                                       {"reductions", "reduction"}}) {
      for (const json& each : d[list]) see(name, each);
    }
    for (const json& r : d["routes"]) {
      for (const json& u : r["via"]) see("via", u);
    }
    for (const json& s : d["stages"]) {
      for (const json& a : s["devices"]) see("assignment", a);
    }
  });
  hetplan::plan saving = test::plan_of(mode::training, 2, 1, {test::stage_of({0}, {{0, 1}, {1, 1}})});
  saving.stages[0].recompute = recomputation::stage;
  saving.stages[0].shard = sharding::state;
  const planning_graph model = test::model_of({test::work_of("a", 1)}, {});
  see("stage", json::parse(io::write_tasks(saving, model, test::wired(2), judge(saving, model, test::wired(2), roofline{})))["stages"][0]);
  CHECK(properties(schema, "all") == seen);
  CHECK(properties(schema, "required") == always);
}
