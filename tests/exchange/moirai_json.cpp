// SPDX-License-Identifier: BSL-1.0
#include <cmath>
#include <cstddef>
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/moirai_json.hpp>
#include <hetplan/place/operator_schedule.hpp>

#include "io/reading.hpp"
#include "support/shared_data.hpp"

namespace test_moirai_json {

using namespace hetplan;
using test::check_refusals;
using test::shared_data;

io::json_document document(const std::string& text) { return test::document(text, "graph.json"); }
place::placement_table read(const std::string& text) { return exchange::read_moirai(document(text)); }

const std::string pair_of_operators = R"({"n": 2, "devices": 2, "edges": [[0, 1]], "op_time_ms": [[1, 2], [3, 4]],
  "edge_time_ms": [[[0, 5], [6, 0]]], "memory": [7, 8], "capacity": [9, 10], "comment": "ignored"})";

TEST_CASE("a sample graph of Moirai's is a placement table in seconds") {
  const place::placement_table t = read(pair_of_operators);
  CHECK(t.size() == 2);
  CHECK(t.time_s(1, 0) == 3e-3);
  CHECK(t.transfer_s(0, 0, 1) == 5e-3);
  CHECK(t.transfer_s(0, 1, 0) == 6e-3);
  CHECK(t.held_bytes(1) == 8);
  CHECK(t.capacity_bytes(1) == 10);
  CHECK(t.pair(0, 1).resources != t.pair(1, 0).resources);
}

TEST_CASE("what is wrong in a graph of Moirai's is said with its place") {
  check_refusals(pair_of_operators, read, "graph.json: ", R"(
    "n": 2 => "n": 0 => /n: expected an integer from 1 to 1000000, got 0
    "devices": 2 => "devices": 0 => /devices...
    "devices": 2, => => /devices: expected the number of devices, got nothing
    [[0, 1]] => [[0, 2]] => /edges/0/1: expected an integer from 0 to 1...
    [[0, 1]] => [[0]] => /edges/0: expected two operators, got 1
    [[0, 1]] => [[0, 1], [0, 1]] => /edges/1: expected every edge once...
    [[0, 1]] => [[1, 1]] => ...expected no cycle...
    [[1, 2], [3, 4]] => [[1, 2]] => /op_time_ms: expected 2 lists, one for each operator, got 1
    [3, 4] => [3] => /op_time_ms/1: expected 2 numbers, one for each device, got 1
    [3, 4] => [3, -4] => /op_time_ms/1/1: expected a number >= 0, got -4
    [6, 0] => [6, "x"] => /edge_time_ms/0/1/1: expected a number >= 0, got "x"
    [7, 8] => [7] => /memory: expected 2 numbers, one for each operator, got 1
    [9, 10] => [] => /capacity: expected 2 numbers, one for each device, got 0
  )");
}

TEST_CASE("an output of dnn-partitioning's costs its way into and out of an accelerator") {
  const place::placement_table t = exchange::read_dnn_partitioning_latency(document(R"({"maxSizePerFPGA": 100, "maxFPGAs": 2, "maxCPUs": 2,
    "nodes": [{"id": 7, "supportedOnFpga": 1, "cpuLatency": 8, "fpgaLatency": 2, "isBackwardNode": 0, "size": 60},
              {"id": 9, "supportedOnFpga": 0, "cpuLatency": 4, "fpgaLatency": 1, "isBackwardNode": 0, "size": 50}],
    "edges": [{"sourceId": 7, "destId": 9, "cost": 3}]})"));
  CHECK(t.devices() == 4);
  CHECK(t.transfer_s(0, 0, 1) == 6e-3);
  CHECK(t.transfer_s(0, 0, 2) == 3e-3);
  CHECK(t.transfer_s(0, 2, 3) == 0);
  CHECK(std::isinf(t.time_s(1, 0)));
  CHECK(t.time_s(1, 3) == 4e-3);
  CHECK(t.capacity_bytes(0) == 100);
  CHECK(t.capacity_bytes(2) == 110);
}

TEST_CASE("a table whose transfers are bytes over bandwidths is the table of its model again") {
  const place::placement_table t = read((R"({"n": 3, "devices": 3, "edges": [[0, 1], [0, 2]],
    "op_time_ms": [[1, 2, 2], [3, 4, 4], [5, 6, 6]], "edge_time_ms": [[[0, 1, 2], [3, 0, 4], [2, 5, 0]], [[0, 2, 4], [6, 0, 8], [4, 10, 0]]],
    "memory": [7, 8, 9], "capacity": [20, 21, 22]})"));
  const exchange::table_model m = exchange::model_of(t, "small");
  CHECK(m.largest_error < 1e-12);
  CHECK(m.cluster.devices()[2].kind == "device1");
  const planning_problem problem{m.model, m.cluster, profiled{}, job{.workload = {.mode = mode::inference}, .batch = 1}};
  const place::placement_table again = place::make_placement_table(problem);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) CHECK(again.time_s(i, k) == t.time_s(i, k));
  }
  for (std::size_t e = 0; e < 2; ++e) {
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) CHECK(again.transfer_s(e, a, b) == Approx(t.transfer_s(e, a, b)));
    }
  }
}

TEST_CASE("the transfers of GoogLeNet's sample are bytes over bandwidths to a third of a percent, example-1's are not") {
  const auto google = shared_data("data/moirai/GoogLeNet.json"), example = shared_data("data/moirai/example-1.json");
  if (!google || !example) return;
  const place::placement_table t = exchange::read_moirai(io::json_document::load(google->string()));
  CHECK(t.size() == 141);
  CHECK(exchange::model_of(t, "g").largest_error < 0.004);
  CHECK(exchange::model_of(exchange::read_moirai(io::json_document::load(example->string())), "e").largest_error > 0.1);
}

}  // namespace test_moirai_json
