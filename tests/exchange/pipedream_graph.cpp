// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/pipedream_graph.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_pipedream_graph {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
using test::with;

namespace {

const std::string toy =
    "node1 -- Input0 -- forward_compute_time=635.902, backward_compute_time=0.000, activation_size=4096.0, parameter_size=0.000\n"
    "node3 -- ReLU(inplace) -- forward_compute_time=1.500, backward_compute_time=0.500, activation_size=100.0, parameter_size=0.000\n"
    "node2 -- LSTM(2, 4) -- forward_compute_time=3.000, backward_compute_time=5.000, activation_size=[600.0; 20.0; 3.0], "
    "parameter_size=64.000"
    " -- stage_id=1\r\n"
    "node4 -- ReLU(inplace) -- forward_compute_time=0.25, backward_compute_time=0, activation_size=8, parameter_size=0\n"
    "\n"
    "\tnode1 -- node2\n"
    "\tnode2 -- node3\n"
    "\tnode2 -- node4\n"
    "\tnode3 -- node4";

planning_graph read(const std::string& text) { return exchange::parse_pipedream_graph(text, "toy.txt"); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}

double time_s(const layer& l, phase what, double batch) {
  device d{.name = "d", .kind = l.profiles.front().device_kind};
  return profiled{}.time({l, what, batch}, d).value();
}

}  // namespace

TEST_CASE("a PipeDream graph becomes layers with measured times and edges with all outputs of their source") {
  const planning_graph g = read(toy);
  CHECK(g.name() == "toy");
  REQUIRE(g.size() == 4);
  const layer &input = g[g.find("node1")], &lstm = g[g.find("node2")], &relu = g[g.find("node3")];
  CHECK(lstm.kind == "LSTM");
  CHECK(lstm.weight == bytes(64));
  CHECK(lstm.activation == bytes(623));
  CHECK(lstm.profiles.front() == layer_profile{"pipedream", {1, 2}, {0.003, 0.006}, {0.005, 0.01}});
  CHECK(relu.kind == "ReLU");
  CHECK_FALSE(relu.has_flops);
  REQUIRE(g.edges().size() == 4);
  CHECK(g.out_edges(lstm.id)[0].forward == bytes(623));
  CHECK(g.out_edges(lstm.id)[1].forward == bytes(623));
  CHECK(g.out_edges(lstm.id)[1].gradient == bytes(623));
  CHECK(g.out_edges(input.id)[0].forward == bytes(4096));
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
}

TEST_CASE("k minibatches take k times as long, both halves of the backward together") {
  const planning_graph g = read(toy);
  const layer& lstm = g[g.find("node2")];
  for (const double batch : {1.0, 2.0, 5.0, 32.0}) {
    CHECK(time_s(lstm, phase::forward, batch) == near(0.003 * batch));
    CHECK(time_s(lstm, phase::backward_input, batch) + time_s(lstm, phase::backward_weight, batch) == near(0.005 * batch));
  }
}

TEST_CASE("what waits for the data loader takes no time unless that is asked for") {
  CHECK(read(toy)[layer_id(0)].profiles.front().forward_s == std::vector<double>{0, 0});
  const planning_graph kept =
      exchange::parse_pipedream_graph(toy, "toy.txt", {.device_kind = "gpu", .name = "mine", .inputs = exchange::input_time::as_measured});
  CHECK(kept[layer_id(0)].profiles.front() == layer_profile{"gpu", {1, 2}, {635.902 / 1000, 2 * (635.902 / 1000)}, {0, 0}});
  CHECK(kept.name() == "mine");
  // A description that only begins with the input's is no input.
  const planning_graph inner = read(with(toy, "LSTM", "InputProjection"));
  CHECK(inner[inner.find("node2")].profiles.front().forward_s.front() == 0.003);
}

TEST_CASE("a bad PipeDream graph names its line") {
  CHECK(error("") == "toy.txt: expected a line with a node, got nothing");
  CHECK(error("\n \r\n") == "toy.txt: expected a line with a node, got nothing");
  check_refusals(toy, read, "toy.txt: line ", R"(
    node4 -- ReLU => node3 -- ReLU => 4: expected an id that no other node has, got "node3" again, first in line 2
    1.500 => -1.500 => 2: expected forward_compute_time >= 0, got "-1.500"
    1.500 => nan => 2: expected forward_compute_time >= 0, got "nan"
    0.500 => 1e999 => 2: expected backward_compute_time >= 0, got "1e999"
    4096.0 => many => 1: expected activation_size >= 0, got "many"
    64.000 => 64 MB => 3: expected parameter_size >= 0, got "64 MB"
    20.0; => -20; => 3: expected activation_size >= 0, got "-20"
    20.0; => ; => 3: expected activation_size >= 0, got ""
    3.0] => 3.0 => 3: expected activation_size to end with ], got "[600.0; 20.0; 3.0"
    600.0; 20.0 => 1.7e308; 1.7e308 => 3: expected activation_size with a finite sum...
    backward_compute_time=0.500,  => => 2: expected 4 measurements, got 3
    backward_compute_time=0.500 => backward=0.5 => 2: expected backward_compute_time=NUMBER, got "backward=0.5"
    node3 -- ReLU(inplace) -- f => node3 -- f => 2: expected ID -- DESCRIPTION -- MEASUREMENTS, got ...
    node2 -- node4 => node2 -- node5 => 8: expected the id of a node, got "node5"
    node2 -- node4 => node2 => 8: expected ID -- ID, an edge, got "node2"
    node2 -- node4 => node2 -- node3 => 8: model "toy": edge "node2" -> "node3" appears twice
    node2 -- node4 => node3 -- node2 => 7: expected edges without a cycle, got "node2" -> "node3", which is on one
    node2 -- node4 => node2 -- node2 => 8: expected edges without a cycle, got "node2" -> "node2", which is on one
  )");
  CHECK(error(toy.substr(0, 60)) == "toy.txt: line 1: expected 4 measurements, got 2");  // truncated
  CHECK(error(with(toy, "LSTM", "LS\xff")).starts_with("toy.txt: line 3: expected UTF-8, got "));
  CHECK(error("{\"nodes\": []}").starts_with("toy.txt: line 1: expected ID -- DESCRIPTION"));
  CHECK(error(with(toy, "ReLU(inplace) -- f", "\x1b[2J -- x=\x1b[2J, ")).find('\x1b') == std::string::npos);
}

TEST_CASE("every PipeDream graph of the collection has the totals that were counted apart") {
  const auto there = test::shared_data("data/pipedream");
  if (!there) return;
  const std::filesystem::path& folder = *there;
  // Totals of an independent decimal script: nodes, edges, ms forward, backward and of inputs, bytes of parameters, bytes over edges.
  struct totals {
    const char* file;
    std::size_t nodes, edges;
    double forward_ms, backward_ms, input_ms, weight, crossing;
  };
  const totals counted[] = {{"alexnet.txt", 23, 23, 680.703, 40.520, 635.902, 244403360, 1287127044},
                            {"gnmt.txt", 48, 58, 33.533, 55.883, 0, 775063808, 310353920},
                            {"inception_v3.txt", 326, 362, 310.969, 399.769, 21.700, 108645056, 20515395080},
                            {"nasnetamobile.txt", 921, 1078, 338.481, 261.363, 15.560, 34343816, 18109473800},
                            {"resnet18.txt", 71, 79, 581.071, 152.296, 473.625, 46758048, 9532604420},
                            {"resnet50.txt", 177, 193, 201.450, 260.931, 18.962, 102228128, 22186557444},
                            {"resnext101.txt", 347, 380, 249.609, 318.310, 10.487, 176710816, 20605042692},
                            {"resnext50.txt", 177, 193, 238.961, 368.990, 17.158, 100115616, 27234664452},
                            {"vgg16.txt", 41, 41, 251.874, 438.633, 17.972, 553430176, 14771552260}};
  for (const totals& t : counted) {
    INFO(t.file);
    for (const exchange::input_time inputs : {exchange::input_time::zero, exchange::input_time::as_measured}) {
      const planning_graph g = exchange::read_pipedream_graph((folder / t.file).string(), {.inputs = inputs});
      double forward_s = 0, backward_s = 0, weight = 0, crossing = 0;
      for (const layer& l : g.layers()) {
        forward_s += l.profiles.front().forward_s.front();
        backward_s += l.profiles.front().backward_s.front();
        weight += l.weight.value();
      }
      for (const layer_edge& e : g.edges()) crossing += e.forward.value();
      CHECK(g.size() == t.nodes);
      CHECK(g.edges().size() == t.edges);
      CHECK(1000 * forward_s == Approx(t.forward_ms - (inputs == exchange::input_time::zero ? t.input_ms : 0)).epsilon(1e-12));
      CHECK(1000 * backward_s == Approx(t.backward_ms).epsilon(1e-12));
      CHECK(weight == t.weight);
      CHECK(crossing == t.crossing);
    }
  }
}

}  // namespace test_pipedream_graph
