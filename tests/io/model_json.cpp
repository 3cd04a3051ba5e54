// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/io/unused_fields.hpp>

#include "io/reading.hpp"

namespace test_model_json {

using namespace hetplan;
using test::check_refusals;
using test::document;
using test::message_of;
using test::with;

namespace {

const std::string good = R"({"format": "hetplan/model/1", "name": "toy",
  "layers": [{"name": "a", "forward_flops": "2 GFLOP", "weight": "4 MB", "kind": "conv"},
             {"name": "b", "forward_flops": 1e9, "profile": {"k": {"batch": [1, 2], "forward": ["1 ms", 2e-3], "backward": [3e-3, 4e-3]}}},
             {"name": "c", "forward_flops": 5}],
  "edges": [{"from": "a", "to": "b", "bytes": "600 kB"}, {"from": "b", "to": "c", "bytes": 0, "gradient": 7}]})";

planning_graph read(const std::string& text) { return io::read_model(document(text, "m.json")); }

}  // namespace

TEST_CASE("a model file means what it says, and the rest is default") {
  const planning_graph g = read(good);
  CHECK(g.name() == "toy");
  CHECK(g.bytes_per_parameter() == 4);
  CHECK(g.tokens_per_sample() == 1);
  REQUIRE(g.size() == 3);
  const layer& a = g[layer_id(0)];
  CHECK(a.kind == "conv");
  CHECK(a.forward_flops == 2_GFLOP);
  CHECK(a.backward_input_flops == 2_GFLOP);
  CHECK(a.backward_weight_flops == 2_GFLOP);
  CHECK(a.weight == 4_MB);
  CHECK(a.weight_traffic == 4_MB);
  CHECK(a.trainable);
  CHECK(a.weight_group == -1);
  CHECK(a.traffic == 600_kB);
  const layer& b = g[layer_id(1)];
  CHECK(b.backward_weight_flops == flops{});
  CHECK(b.profiles == std::vector<layer_profile>{{"k", {1, 2}, {1e-3, 2e-3}, {3e-3, 4e-3}}});
  CHECK(g.edges()[0].gradient == 600_kB);
  CHECK(g.edges()[1].gradient == bytes(7));
}

TEST_CASE("a bad model file ends in one message with file, pointer, expectation and finding") {
  check_refusals(good, read, "m.json: ", R"(
    [] => expected a JSON object, got an empty array
    {} => /format: expected "hetplan/model/1", got nothing
    model/1 => model/2 => /format: expected "hetplan/model/1", got "hetplan/model/2"
    "hetplan/model/1" => 1 => /format: expected "hetplan/model/1", got 1
    , "name": "toy" => => /name: expected text, got nothing
    "toy" => 7 => /name: expected text, got 7
    "name": "toy" => "name": "toy", "colour": 1
      => /colour: expected a known key, got "colour"; known keys: format, name, layers, edges, bytes_per_parameter, tokens_per_sample...
    "weight" => "weigth" => /layers/0/weigth: expected a known key, got "weigth"; did you mean "weight"?
    {"format": "hetplan/model/1", "name": "x", "layers": []} => /layers: expected at least one layer, got an empty array
    {"format": "hetplan/model/1", "name": "x"} => /layers: expected an array of layers, got nothing
    {"format": "hetplan/model/1", "name": "x", "layers": [3]} => /layers/0: expected a layer, got 3
    "name": "c" => "name": "a" => /layers/2/name: expected a name that no other layer has, got "a"
    "name": "c" => "name": "" => /layers/2/name: expected a name, got ""
    "name": "c",  => => /layers/2/name: expected a name, got nothing
    , "forward_flops": 5 => => /layers/2/forward_flops: expected FLOP >= 0, or a profile, got nothing
    "forward_flops": 5 => "forward_flops": -5 => /layers/2/forward_flops: expected FLOP >= 0, got -5
    2 GFLOP" => 2 GFLOPS" => /layers/0/forward_flops: expected FLOP >= 0, got "2 GFLOPS"; did you mean "2 GFLOP"?
    4 MB => 4 Mb => /layers/0/weight: expected bytes >= 0, got "4 Mb"; did you mean "4 Mbit"?
    "4 MB" => null => /layers/0/weight: expected bytes >= 0, got null
    "conv" => "conv", "split": null => /layers/0/split: expected "none", "rows", "columns" or "along", got null
    "conv" => "conv", "split": 3 => /layers/0/split: expected "none", "rows", "columns" or "along", got 3
    "conv" => "conv", "trainable": 1 => /layers/0/trainable: expected true or false, got 1
    "conv" => "conv", "activation": 5, "activation_for_weights": 6
      => /layers/0/activation_for_weights: expected bytes up to the activation, 5, got 6
    "conv" => "conv", "activation_for_weights": -1 => /layers/0/activation_for_weights: expected bytes >= 0, got -1
    "conv" => "conv", "rows": 0 => /layers/0/rows: expected a number > 0, got 0
    "conv" => "conv", "rows": "2 B" => /layers/0/rows: expected a number > 0, got "2 B"
    "conv" => null => /layers/0/kind: expected text, got null
    "name": "toy" => "name": "toy", "bytes_per_parameter": 0 => /bytes_per_parameter: expected bytes > 0, got 0
    "name": "toy" => "name": "toy", "tokens_per_sample": 0 => /tokens_per_sample: expected an integer >= 1, got 0
    "toy" => "toy", "tokens_per_sample": 3000000000 => /tokens_per_sample: expected an integer from 1 to 2147483647, got 3000000000
  )");
}

TEST_CASE("a bad profile is found") {
  check_refusals(good, read, "m.json: ", R"(
    [1, 2] => [2, 1] => /layers/1/profile/k/batch/1: expected ascending batch sizes, got 1
    [1, 2] => [0, 2] => /layers/1/profile/k/batch/0: expected a batch size >= 1, got 0
    [1, 2] => [] => /layers/1/profile/k/batch: expected at least one batch size, got an empty array
    [1, 2] => [1] => /layers/1/profile/k/forward: expected one entry per batch size (1), got 2
    "1 ms" => "1 mW" => /layers/1/profile/k/forward/0: expected seconds >= 0, got "1 mW"
    [3e-3, 4e-3] => [3e-3] => /layers/1/profile/k/backward: expected one entry per batch size (2), got 1
    "batch": [1, 2],  => => /layers/1/profile/k/batch: expected an array of batch sizes, got nothing
    "backward" => "backwards" => /layers/1/profile/k/backwards: expected a known key, got "backwards"; did you mean "backward"?
    {"format": "hetplan/model/1", "name": "x", "layers": [{"name": "a", "profile": {}}]}
      => /layers/0/profile: expected at least one device kind, got an empty object
  )");
}

TEST_CASE("a bad edge is found") {
  CHECK(message_of([] { return read(with(good, "\"name\": \"toy\"", "\"name\": \"encoder\"")); }) == "no error");
  check_refusals(good, read, "m.json: ", R"(
    "from": "b" => "from": "B" => /edges/1/from: expected the name of a layer, got "B"; did you mean "a"?
    "to": "c" => "to": 3 => /edges/1/to: expected the name of a layer, got 3
    "to": "c" => "to": "b" => /edges/1/to: expected another layer than from, got "b"
    "from": "b", "to": "c" => "from": "a", "to": "b" => /edges/1: model "toy": edge "a" -> "b" appears twice
    , "bytes": 0 => => /edges/1/bytes: expected bytes >= 0, got nothing
    "gradient": 7 => "gradient": -7 => /edges/1/gradient: expected bytes >= 0, got -7
    7}] => 7}, {"from": "c", "to": "a", "bytes": 1}] => ...: expected edges without a cycle, got "...
    7}] => 7}, {"from": "c", "to": "b", "bytes": 1}] => /edges/1: expected edges without a cycle, got "b" -> "c", which is on one
    "from": "a" => "from": "frist" => /edges/0/from: expected the name of a layer, got "frist"
    "name": "a" => "name": "encoder0" => "from": "a" => "from": "encoder9"
      => /edges/0/from: expected the name of a layer, got "encoder9"; did you mean "encoder0"?
  )");
}

TEST_CASE("layers of a weight group must agree") {
  const std::string tied = with(with(good, "\"forward_flops\": 5", "\"forward_flops\": 5, \"weight\": 4e6, \"weight_group\": \"t\""),
                                "\"kind\": \"conv\"", "\"weight_group\": \"t\"");
  CHECK(read(tied).weight_groups().size() == 1);
  check_refusals(tied, read, "m.json: ", R"(
    4e6 => 5e6 => /layers/2/weight_group: expected the same weight and trainable as layer "a" of group "t", got weight 5e+06
    4e6 => 4e6, "trainable": false
      => /layers/2/weight_group: expected the same weight and trainable as layer "a" of group "t", got weight 4e+06, not trainable
    "t" => "" => /layers/0/weight_group: expected the name of a group, got ""
  )");
}

TEST_CASE("layers listed backwards are numbered forwards") {
  const planning_graph g =
      read(R"({"format": "hetplan/model/1", "name": "x", "layers": [{"name": "b", "forward_flops": 1}, {"name": "a", "forward_flops": 2}],
    "edges": [{"from": "a", "to": "b", "bytes": 3}]})");
  CHECK(g.find("a") == layer_id(0));
}

TEST_CASE("what show prints is the model and its totals") {
  const std::string text = io::describe_model(read(good));
  CHECK(text.find("\"parameters\": 1000000,\n") != std::string::npos);
  CHECK(text.find("\"forward_flops\": 3000000005\n") != std::string::npos);
  CHECK(text.starts_with("{\n  \"format\": \"hetplan/model/1\",\n  \"name\": \"toy\",\n  \"layers\": ["));
}

TEST_CASE("a model and a cluster that do not know each other's times are refused") {
  device fast{.name = "fast", .kind = "k", .memory = 1_GB};
  device plain{.name = "plain", .memory = 1_GB, .compute = 1_TFLOP_per_s};
  const planning_graph g = read(good);
  const auto check = [](const planning_graph& model, const device& d, std::optional<mode> m = {}) {
    return message_of(
        [&] { io::check_together(model, cluster("c", d), "c.json", m ? std::optional(workload{.mode = *m}) : std::nullopt); });
  };
  CHECK(check(g, plain, mode::training) == "no error");
  CHECK(check(g, fast) ==
        "c.json: /devices/0/compute: expected FLOP/s > 0, got nothing: layer \"a\" of model \"toy\" has no profile for kind \"k\"");
  const planning_graph measured = read(R"({"format": "hetplan/model/1", "name": "x",
    "layers": [{"name": "a", "profile": {"k": {"batch": [1], "forward": [1]}}}]})");
  CHECK(check(measured, fast) == "no error");
  CHECK(check(measured, fast, mode::inference) == "no error");
  CHECK(check(measured, fast, mode::training) ==
        "c.json: /devices/0/kind: expected a kind with a measured backward, got \"k\": layer \"a\" of model \"x\" has no backward, which "
        "training needs, in its profile for kind \"k\"");
  CHECK(check(measured, plain) ==
        "c.json: /devices/0/kind: expected a kind with a profile, got \"plain\": layer \"a\" of model \"x\" has no forward_flops and no "
        "profile for "
        "kind \"plain\"");
}

}  // namespace test_model_json
