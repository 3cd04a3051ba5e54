// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <map>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/exchange/piper_json.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_piper_json {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
using test::with;

namespace {

const std::string toy =
    R"({"maxDevices": 3, "maxMemoryPerDevice": 8e9, "bandwidth": 1e9, "mbsInBatch": 16, "author": {"debug": ["is", "let", "be"]},
 "nodes": [
  {"id": 7, "name": "layer", "TMPCs": {"1": [
    {"id": "vanilla", "timePerSample": 3.0, "parameterSize": 100, "memoryUsageA": 50, "memoryUsageB": 200, "syncTimeFw": {}, "syncTimeBw": {"-2": 0}},
    {"id": "recomp", "timePerSample": 4.5, "parameterSize": 100, "memoryUsageA": 5, "memoryUsageB": 245, "syncTimeFw": {}, "syncTimeBw": {"-2": 0}}],
   "2": [{"id": "vanilla", "timePerSample": 1.8, "parameterSize": 50, "memoryUsageA": 30, "memoryUsageB": 100, "syncTimeFw": {},
          "syncTimeBw": {"-2": 12}}]}},
  {"id": -2, "name": "layer", "color": "red", "TMPCs": {"1": [
    {"id": "vanilla", "timePerSample": 0, "parameterSize": 0, "memoryUsageA": 0, "memoryUsageB": 0, "syncTimeFw": {"7": 9}, "syncTimeBw": {}}]}}],
 "edges": [{"sourceId": 7, "destId": -2, "communicationCost": 600}]})";

exchange::piper_workload read(const std::string& text) { return exchange::read_piper_workload(test::document(text, "toy.json")); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}

}  // namespace

TEST_CASE("a Piper input is read as it stands, with neighbours as indices") {
  const exchange::piper_workload w = read(toy);
  CHECK(w.name == "toy");
  CHECK(w.devices == 3);
  CHECK(w.memory == bytes(8e9));
  CHECK(w.bandwidth == bytes_per_second(1e9));
  CHECK(w.microbatches == 16);
  REQUIRE(w.nodes.size() == 2);
  CHECK(w.nodes[0].id == 7);
  CHECK(w.nodes[1].id == -2);
  REQUIRE(w.nodes[0].configurations.at(1).size() == 2);
  const exchange::piper_configuration& c = w.nodes[0].configurations.at(1)[1];
  CHECK(c.name == "recomp");
  CHECK(c.time == 4.5);
  CHECK(c.memory_per_microbatch == bytes(5));
  CHECK(c.memory_fixed == bytes(245));
  CHECK(w.nodes[0].configurations.at(2)[0].sync_backward == std::map<std::size_t, bytes>{{1, bytes(12)}});
  CHECK(w.nodes[1].configurations.at(1)[0].sync_forward == std::map<std::size_t, bytes>{{0, bytes(9)}});
  CHECK(w.edges == std::vector<exchange::piper_edge>{{0, 1, bytes(600)}});
  CHECK(read(with(toy, "mbsInBatch", "maxBatchSize")).microbatches == 16);
}

TEST_CASE("the chosen configuration becomes a planning graph, its time split 1 : 2 unless told otherwise") {
  const planning_graph g = exchange::piper_graph(read(toy));
  REQUIRE(g.size() == 2);
  const layer& l = g[g.find("7 layer")];
  CHECK(l.kind == "layer");
  CHECK(l.weight == bytes(100));
  CHECK(l.activation == bytes(50));
  REQUIRE(l.profiles.size() == 1);
  CHECK(l.profiles[0].device_kind == "piper");
  CHECK(l.profiles[0].batch == std::vector<double>{1, 2});
  CHECK(l.profiles[0].forward_s[0] == near(1));
  CHECK(l.profiles[0].backward_s[1] == near(4));
  CHECK(g.edges()[0].forward == bytes(600));
  CHECK(io::read_model(test::document(io::write_model(g))) == g);

  const planning_graph recomputing =
      exchange::piper_graph(read(with(toy, "\"id\": \"vanilla\", \"timePerSample\": 0,", "\"id\": \"recomp\", \"timePerSample\": 0,")),
                            {.configuration = "recomp", .time_unit = 1_ms, .forward_share = 0.25, .device_kind = "v100"});
  const layer_profile& p = *recomputing[layer_id(0)].profile_for("v100");
  CHECK(p.forward_s[0] == near(0.25 * 0.0045));
  CHECK(p.backward_s[0] == near(0.75 * 0.0045));
  CHECK(recomputing[layer_id(0)].activation == bytes(5));
}

TEST_CASE("a node without the chosen configuration says which it has") {
  const exchange::piper_workload w = read(toy);
  CHECK(message_of([&] { return exchange::piper_graph(w, {.tensor_parallel = 2}); }) ==
        "piper_graph: toy: node -2: expected one of its configurations \"vanilla\" at 1, got \"vanilla\" at 2");
  CHECK(message_of([&] { return exchange::piper_graph(w, {.configuration = "magic"}); }) ==
        "piper_graph: toy: node 7: expected one of its configurations \"vanilla\" at 1, \"recomp\" at 1, \"vanilla\" at 2, got \"magic\" "
        "at 1");
  CHECK(message_of([&] { return exchange::piper_graph(w, {.forward_share = 1.5}); }) ==
        "piper_graph: forward_share = 1.5; expected a share from 0 to 1");
  CHECK(message_of([&] { return exchange::piper_graph(w, {.time_unit = 0_s}); }) ==
        "piper_graph: time_unit = 0; expected finite seconds > 0");
}

TEST_CASE("a Piper input says which devices there are") {
  const cluster c = exchange::piper_cluster(read(toy));
  CHECK(c.size() == 3);
  CHECK(c[device_id(2)].kind == "piper");
  CHECK(c[device_id(2)].memory == bytes(8e9));
  CHECK(c.network().find(device_id(0), device_id(2))->via.size() == 2);
  CHECK(c.network().resources()[0].capacity == bytes_per_second(1e9));
  CHECK(exchange::piper_cluster(read(with(toy, "\"maxDevices\": 3", "\"maxDevices\": 1"))).size() == 1);
  CHECK(message_of([] { return exchange::piper_cluster(read(with(toy, "\"maxDevices\": 3", "\"maxDevices\": 2000000000"))); }) ==
        "piper_cluster: toy: devices = 2000000000; expected 1 to 1000");
}

TEST_CASE("a bad Piper input names its place") {
  CHECK(error("") == "toy.json: expected JSON, got an empty file");
  CHECK(error(toy.substr(0, toy.size() / 2)).starts_with("toy.json: line "));
  check_refusals(toy, read, "toy.json: ", R"(
    [] => expected a JSON object, got an empty array
    "maxDevices": 3,  => => /maxDevices: expected an integer >= 1, got nothing
    "mbsInBatch": 16,  => => /mbsInBatch: expected an integer >= 1, got nothing
    8e9 => "8 GB" => /maxMemoryPerDevice: expected a number > 0, got "8 GB"
    1e9 => 0 => /bandwidth: expected a number > 0, got 0
    "id": -2 => "id": 7 => /nodes/1/id: expected an id that no other node has, got 7
    "id": -2 => "id": "x" => /nodes/1/id: expected an integer >= -9223372036854775808, got "x"
    3.0 => -3.0 => /nodes/0/TMPCs/1/0/timePerSample: expected a number >= 0, got -3
    3.0 => NaN => line 4, column ...
    3.0 => 1e999 => ...
    "recomp" => "vanilla" => /nodes/0/TMPCs/1/1/id: expected a name that no other configuration of this degree has, got "vanilla"
    "2": [ => "two": [ => /nodes/0/TMPCs/two: expected a degree >= 1 as key, got "two"
    "2": [ => "1.0": [ => /nodes/0/TMPCs/1.0: expected every degree once, got "1.0" again
    {"7": 9} => {"8": 9} => /nodes/1/TMPCs/1/0/syncTimeFw/8: expected the id of a node as key, got "8"
    {"7": 9} => [] => /nodes/1/TMPCs/1/0/syncTimeFw: expected an object from node to bytes, got an empty array
    "destId": -2 => "destId": 3 => /edges/0/destId: expected the id of a node, got 3
    "destId": -2 => "destId": 7 => /edges/0/destId: expected another node than sourceId, got 7
    600} => 600}, {"sourceId": 7, "destId": -2, "communicationCost": 1} => /edges/1: expected every edge once, got 7 -> -2 again
    600} => 600}, {"sourceId": -2, "destId": 7, "communicationCost": 1}
      => /edges/1: expected edges without a cycle, got -2 -> 7, which is on one
    "edges": [ => "edgy": [ => /edges: expected an array of edges, got nothing
  )");
}

TEST_CASE("every Piper input of the collection has the totals that were counted apart") {
  const auto there = test::shared_data("data/piper");
  if (!there) return;
  const std::filesystem::path& folder = *there;
  // Totals of an independent script: nodes, edges, microbatches, time of the vanilla configurations at degree 1 (seconds for BERT,
  // else ms), parameter bytes, a, bytes over all edges.
  struct totals {
    const char* file;
    std::size_t nodes, edges;
    int microbatches;
    seconds unit;
    double time, weight, kept, crossing;
  };
  const totals counted[] = {{"bert32a100.json", 37, 67, 1920, 1_s, 0.972864, 5879481600, 19457540096, 1574977536},
                            {"gnmt.json", 78, 104, 256, 1_ms, 520.453, 1110870272, 1334665728, 1108984832},
                            {"resnet.json", 177, 193, 7680, 1_ms, 462.381, 102228128, 19308728324, 22186557444}};
  for (const totals& t : counted) {
    INFO(t.file);
    const exchange::piper_workload w = exchange::read_piper_workload(io::json_document::load((folder / t.file).string()));
    CHECK(w.microbatches == t.microbatches);
    const planning_graph g = exchange::piper_graph(w, {.time_unit = t.unit});
    double forward_s = 0, backward_s = 0, weight = 0, kept = 0, crossing = 0;
    for (const layer& l : g.layers()) {
      forward_s += l.profiles.front().forward_s.front();
      backward_s += l.profiles.front().backward_s.front();
      weight += l.weight.value();
      kept += l.activation.value();
    }
    for (const layer_edge& e : g.edges()) crossing += e.forward.value();
    CHECK(g.size() == t.nodes);
    CHECK(g.edges().size() == t.edges);
    CHECK(forward_s + backward_s == Approx(t.time * t.unit.value()).epsilon(1e-12));
    CHECK(backward_s == Approx(2 * forward_s).epsilon(1e-12));
    CHECK(weight == t.weight);
    CHECK(kept == Approx(t.kept).epsilon(1e-12));
    CHECK(crossing == t.crossing);
    // Properties that the docstring states of b and of the synchronisation keys.
    for (const exchange::piper_node& n : w.nodes) {
      for (const auto& [degree, all] : n.configurations)
        CHECK(all.front().memory_fixed.value() == Approx(2 * all.front().parameters.value()));
    }
    for (const exchange::piper_edge& e : w.edges) {
      CHECK(w.nodes[e.from].configurations.at(1).front().sync_backward.contains(e.to));
      CHECK(w.nodes[e.to].configurations.at(1).front().sync_forward.contains(e.from));
    }
    if (t.nodes == 37) CHECK(exchange::piper_graph(w, {.tensor_parallel = 8, .configuration = "activation recomp"}).size() == 37);
  }
}

}  // namespace test_piper_json
