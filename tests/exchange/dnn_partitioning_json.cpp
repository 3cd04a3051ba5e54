// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/dnn_partitioning_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_dnn_partitioning_json {

using namespace hetplan;
using test::check_refusals;
using test::document;
using test::message_of;
using test::near;
namespace fs = std::filesystem;

namespace {

const std::string workload_text = R"({"maxSizePerFPGA": 17e9, "maxFPGAs": 2, "maxCPUs": 1, "comment": ["ignored", {"id": 3}],
 "nodes": [{"name": "a", "id": 7, "supportedOnFpga": 1, "cpuLatency": 6.5, "fpgaLatency": 0.25, "isBackwardNode": 0, "colorClass": 4, "size": 100.0},
  {"id": 3, "supportedOnFpga": false, "cpuLatency": 0, "fpgaLatency": 0.0, "isBackwardNode": false, "size": 8, "layerId": 12},
  {"name": "a'", "id": 0, "supportedOnFpga": true, "cpuLatency": 2, "fpgaLatency": 1, "isBackwardNode": 1, "colorClass": 4, "size": 0}],
 "edges": [{"sourceId": 7, "destId": 3, "cost": 0.5, "size": 99}, {"sourceId": 7, "destId": 0, "cost": 0.5}, {"sourceId": 3, "destId": 0, "cost": 2}]})";
const std::string split_text =
    R"({"cpus": [{"load": 0.0, "nodes": [3]}], "fpgas": [{"load": -1, "nodes": []}, {"nodes": [7]}], "maxLoad": -1})";

exchange::dnn_partitioning_workload read(const std::string& text) { return exchange::read_dnn_partitioning(document(text)); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}
std::vector<std::size_t> split(const std::string& text) {
  return exchange::read_dnn_partitioning_split(document(text), read(workload_text));
}

}  // namespace

TEST_CASE("a dnn-partitioning workload is read in SI units; what it has besides is ignored") {
  const auto all = read(workload_text);
  CHECK(all.ids == std::vector<long long>{7, 3, 0});
  const place::placement_workload& w = all.workload;
  CHECK(w.accelerators == 2);
  CHECK(w.cpus == 1);
  CHECK(w.accelerator_memory == bytes(17e9));
  REQUIRE(w.operators.size() == 3);
  const place::placed_operator& a = w.operators[0];
  CHECK(a.name == "a");
  CHECK(a.cpu_time.value() == near(6.5e-3));
  CHECK(a.accelerator_time.value() == near(0.25e-3));
  CHECK(a.transfer.value() == near(0.5e-3));
  CHECK(a.size == bytes(100));
  CHECK(a.on_accelerator);
  CHECK(!a.backward);
  CHECK(a.color == 4);
  CHECK(!w.operators[1].on_accelerator);
  CHECK(!w.operators[1].color);
  CHECK(w.operators[1].name.empty());
  CHECK(w.operators[1].transfer.value() == near(2e-3));
  CHECK(w.operators[2].backward);
  CHECK(w.operators[2].transfer == seconds(0));
  CHECK(w.edges == std::vector<std::pair<std::size_t, std::size_t>>{{0, 1}, {0, 2}, {1, 2}});
  CHECK_NOTHROW(place::check_placement_workload(w));
}

TEST_CASE("a bad dnn-partitioning workload names the place and the reason") {
  CHECK(error("") == "f.json: expected JSON, got an empty file");
  CHECK(error(workload_text.substr(0, workload_text.size() - 20)).starts_with("f.json: line 5, column "));
  check_refusals(workload_text, read, "f.json: ", R"(
    [] => expected an object, got an empty array
    "maxSizePerFPGA": 17e9 => "size": 1 => /maxSizePerFPGA: expected a number >= 0, got nothing
    17e9 => -1 => /maxSizePerFPGA: expected a number >= 0, got -1
    17e9 => "17 GB" => /maxSizePerFPGA: expected a number >= 0, got "17 GB"
    "maxFPGAs": 2 => "maxFPGAs": 2.5 => /maxFPGAs: expected an integer >= 0, got 2.5
    "maxFPGAs": 2 => "maxFPGAs": -2 => /maxFPGAs: expected an integer from 0 to 65536, got -2
    "maxCPUs": 1 => "maxCPUs": 65537 => /maxCPUs: expected an integer from 0 to 65536, got 65537
    "maxFPGAs": 2, "maxCPUs": 1 => "maxFPGAs": 0, "maxCPUs": 0 => expected at least one device, got maxFPGAs 0 and maxCPUs 0
    {"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "nodes": [], "edges": []} => /nodes: expected at least one node, got an empty array
    {"maxSizePerFPGA": 1, "maxFPGAs": 1, "maxCPUs": 0, "edges": []} => /nodes: expected at least one node, got nothing
    "id": 3, => "id": 7, => /nodes/1/id: expected every id once, got 7 again
    "id": 3, => => /nodes/1/id: expected an integer >= 0, got nothing
    "id": 3, => "id": "3", => /nodes/1/id: expected an integer >= 0, got "3"
    "supportedOnFpga": 1 => "supportedOnFpga": 2 => /nodes/0/supportedOnFpga: expected an integer from 0 to 1, got 2
    "supportedOnFpga": false => "supportedOnFpga": "no" => /nodes/1/supportedOnFpga: expected true or false, got "no"
    "isBackwardNode": 0,  => => /nodes/0/isBackwardNode: expected true, false, 1 or 0, got nothing
    6.5 => -6.5 => /nodes/0/cpuLatency: expected a number >= 0, got -6.5
    6.5 => null => /nodes/0/cpuLatency: expected a number >= 0, got null
    "fpgaLatency": 0.25,  => => /nodes/0/fpgaLatency: expected a number >= 0, got nothing
    "size": 8 => "size": -8 => /nodes/1/size: expected a number >= 0, got -8
    "colorClass": 4 => "colorClass": "red" => /nodes/0/colorClass: expected an integer >= 0, got "red"
    "name": "a" => "name": 1 => /nodes/0/name: expected text, got 1
    "sourceId": 7 => "sourceId": 8 => /edges/0/sourceId: expected the id of a node, got 8
    "destId": 3 => "to": 3 => /edges/0/destId: expected an integer >= 0, got nothing
    "cost": 2 => "cost": -2 => /edges/2/cost: expected a number >= 0, got -2
    "destId": 0, "cost": 0.5 => "destId": 0, "cost": 0.75 => /edges/1: expected cost 0.5 as of another edge from 7, got 0.75
    "sourceId": 3, "destId": 0 => "sourceId": 3, "destId": 7 => /edges: expected no cycle, got one through 7 -> 3
    "sourceId": 3, "destId": 0 => "sourceId": 3, "destId": 3 => /edges: expected no cycle, got one through 3 -> 3
    "sourceId": 3, "destId": 0 => "sourceId": 0, "destId": 3 => /edges/2: expected no edge from a backward to a forward node
  )");
}

TEST_CASE("a split says where operators are, and colors place what it leaves out") {
  CHECK(split(split_text) == std::vector<std::size_t>{1, 2, 1});
  CHECK(split(R"({"fpgas": [{"nodes": [0, 7, 3]}, {"nodes": []}, {"nodes": []}], "cpus": []})") == std::vector<std::size_t>{0, 0, 0});
  check_refusals(split_text, split, "f.json: ", R"(
    [3] => [4] => /cpus/0/nodes/0: expected the id of a node, got 4
    [3] => [3, 3] => /cpus/0/nodes/1: expected every node once, got 3 again
    [3] => [7, 3] => /cpus/0/nodes/0: expected every node once, got 7 again
    [3] => [] => expected every node on a device, got none for 3
    [3] => 3 => /cpus/0/nodes: expected a list of ids, got 3
    "nodes": [3] => "node": [3] => /cpus/0/nodes: expected a list of ids, got nothing
    "fpgas" => "gpus" => /fpgas: expected a list of devices, got nothing
    {"load": 0.0, "nodes": [3]} => {"nodes": []}, {"nodes": [3]} => /cpus/1: expected at most 1 cpus, got one more
  )");
}

TEST_CASE("every published workload is read, and no part of a truncated one") {
  const auto there = test::shared_data("data/dnn-partitioning");
  if (!there) return;
  const fs::path& folder = *there;
  int read_files = 0;
  for (const char* inputs : {"throughput-inputs", "latency-inputs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder / inputs)) {
      if (entry.path().extension() != ".json") continue;
      INFO(entry.path().string());
      const auto all = exchange::read_dnn_partitioning(io::json_document::load(entry.path().string()));
      CHECK_NOTHROW(place::check_placement_workload(all.workload));
      CHECK(all.ids.size() == all.workload.operators.size());
      ++read_files;
    }
  }
  CHECK(read_files >= 15);
  const std::string text = io::read_text((folder / "throughput-inputs/LayerGraphs/bert24_inference.json").string());
  for (std::size_t length = 0; length + 2 < text.size(); length += 97) CHECK(error(text.substr(0, length)).starts_with("f.json: "));
}

TEST_CASE("a training workload becomes layers with a forward and a backward, and its devices") {
  // a -> b -> c, each with a gradient; a's output is also read by c's backward, and c's by a's.
  const auto all = read(R"({"maxSizePerFPGA": 1000, "maxFPGAs": 2, "maxCPUs": 1, "nodes": [
    {"id": 1, "name": "a", "supportedOnFpga": 1, "cpuLatency": 10, "fpgaLatency": 1, "isBackwardNode": 0, "colorClass": 1, "size": 100},
    {"id": 2, "name": "b", "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "isBackwardNode": 0, "colorClass": 2, "size": 200},
    {"id": 3, "name": "c", "supportedOnFpga": 1, "cpuLatency": 30, "fpgaLatency": 3, "isBackwardNode": 0, "colorClass": 3, "size": 300},
    {"id": 6, "supportedOnFpga": 1, "cpuLatency": 40, "fpgaLatency": 4, "isBackwardNode": 1, "colorClass": 3, "size": 1},
    {"id": 5, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 5, "isBackwardNode": 1, "colorClass": 2, "size": 2},
    {"id": 4, "supportedOnFpga": 1, "cpuLatency": 60, "fpgaLatency": 6, "isBackwardNode": 1, "colorClass": 1, "size": 3}],
   "edges": [{"sourceId": 1, "destId": 2, "cost": 0.5}, {"sourceId": 2, "destId": 3, "cost": 0.25}, {"sourceId": 6, "destId": 5, "cost": 2},
    {"sourceId": 5, "destId": 4, "cost": 1}, {"sourceId": 1, "destId": 6, "cost": 0.5}, {"sourceId": 3, "destId": 4, "cost": 4}]})");
  const exchange::dnn_partitioning_model m = exchange::dnn_partitioning_training(all, "toy");
  REQUIRE(m.model.size() == 3);
  CHECK(m.model[layer_id(0)].name == "1 a");
  CHECK(m.model[layer_id(0)].weight == bytes(103));
  CHECK(!m.model[layer_id(0)].trainable);
  CHECK(*m.model[layer_id(1)].profile_for("accelerator") == layer_profile{"accelerator", {1, 2}, {0.002, 0.004}, {0.005, 0.010}});
  CHECK(m.model[layer_id(2)].profile_for("cpu")->backward_s[0] == near(0.04));
  REQUIRE(m.model.edges().size() == 3);
  CHECK(m.model.edges()[0].forward == bytes(500e3));  // a to b
  CHECK(m.model.edges()[0].gradient == bytes(1e6));
  CHECK(m.model.edges()[1].forward == bytes(500e3));  // a to c: for c's backward
  CHECK(m.model.edges()[1].gradient == bytes(4e6));   // c's output, for a's backward
  CHECK(m.model.edges()[2].gradient == bytes(2e6));
  REQUIRE(m.cluster.size() == 3);
  CHECK(m.cluster[device_id(0)].memory == bytes(1000));
  CHECK(m.cluster[device_id(2)].kind == "cpu");
  CHECK(m.cluster.network().find(device_id(0), device_id(1))->via.size() == 2);
  CHECK(m.cluster.network().find(device_id(0), device_id(2))->via.size() == 1);
  auto none = all;
  none.workload.operators[1].on_accelerator = false;
  CHECK(message_of([&] { return exchange::dnn_partitioning_training(none, "toy"); }) ==
        "model \"toy\": node 2 cannot run on an accelerator; a profile cannot say that");
  none = all;
  none.workload.cpus = 60000;
  CHECK(message_of([&] { return exchange::dnn_partitioning_training(none, "toy"); }) ==
        "model \"toy\": expected at most 1000 devices, got 60002");
}

TEST_CASE("published training workloads: all work is in the model, and cuts between layers carry what a device's load counts") {
  const auto there = test::shared_data("data/dnn-partitioning/throughput-inputs");
  if (!there) return;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(*there)) {
    const std::string path = entry.path().string();
    if (path.find("training") == std::string::npos) continue;
    INFO(path);
    const auto all = exchange::read_dnn_partitioning(io::json_document::load(path));
    const exchange::dnn_partitioning_model m = exchange::dnn_partitioning_training(all, "m");
    double work = 0, expected = 0, held = 0, size = 0;
    for (const layer& l : m.model.layers()) {
      work += l.profile_for("accelerator")->forward_s[0] + l.profile_for("accelerator")->backward_s[0];
      held += l.weight.value();
    }
    for (const place::placed_operator& o : all.workload.operators) {
      expected += o.accelerator_time.value();
      size += o.size.value();
    }
    CHECK(work == near(expected));
    CHECK(held == near(size));
    ++files;
    if (path.find("LayerGraphs") == std::string::npos) continue;
    // One forward and one backward operator a layer: the first layers on one accelerator, the rest on another.
    std::map<std::string, std::size_t> layer_of;
    for (const layer& l : m.model.layers()) layer_of[l.name.substr(0, l.name.find(' '))] = l.id.index();
    std::map<long long, std::size_t> of_color;
    for (std::size_t i = 0; i < all.ids.size(); ++i) {
      if (const auto found = layer_of.find(std::to_string(all.ids[i])); found != layer_of.end())
        of_color[*all.workload.operators[i].color] = found->second;
    }
    for (std::size_t cut = 1; cut < m.model.size(); cut += 7) {
      std::vector<std::size_t> device;
      for (const place::placed_operator& o : all.workload.operators) device.push_back(of_color.at(*o.color) < cut ? 0 : 1);
      double first = 0;
      for (const layer& l : m.model.layers()) {
        if (l.id.index() < cut) first += l.profile_for("accelerator")->forward_s[0] + l.profile_for("accelerator")->backward_s[0];
      }
      std::map<std::size_t, double> out, back;
      for (const layer_edge& e : m.model.edges()) {
        if (e.from.index() >= cut || e.to.index() < cut) continue;
        out[e.from.index()] = std::max(out[e.from.index()], e.forward.value());
        back[e.to.index()] = std::max(back[e.to.index()], e.gradient.value());
      }
      for (const auto& [l, b] : out) first += b / 1e9;
      for (const auto& [l, b] : back) first += b / 1e9;
      CHECK(place::device_loads(all.workload, device)[0].value() == near(first));
    }
  }
  CHECK(files == 6);
}

}  // namespace test_dnn_partitioning_json
