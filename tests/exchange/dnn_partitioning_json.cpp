// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
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

}  // namespace test_dnn_partitioning_json
