// SPDX-License-Identifier: BSL-1.0
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/exchange/sailor_profile.hpp>
#include <hetplan/io/model_json.hpp>
#include <hetplan/zoo/models.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"
#include "support/shared_data.hpp"

namespace test_sailor_profile {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;
using test::with;

namespace {

// Two layers; microbatch sizes 4 and 1, degrees 1 and 2 (size 4 only at degree 2).
const std::string toy = R"({"4": {"2": {"1": [0.04, 0.08, 0.003], "0": [0.004, 0, 0.001]}},
 "1": {"1": {"0": [0.002, 0, 0.002], "1": [0.02, 0.04, 0.006]}, "2": {"0": [0.001, 0, 0.001], "1": [0.011, 0.021, 0.003]}}})";
const std::string sizes = R"({"model": {"model_name": "toy", "num_layers": 2, "parameters": {"total_parameters_bytes": 300,
 "parameters_per_layer_bytes": [100, 200], "activation_parameters_bytes": [64, 80]}}, "execution_time": {}})";

exchange::sailor_profile read(const std::string& text) { return exchange::read_sailor_profile(test::document(text, "profile.json")); }
std::string error(const std::string& text) {
  return message_of([&] { return read(text); });
}
exchange::layer_sizes read_sizes(const std::string& text) { return exchange::read_layer_sizes(test::document(text, "mbs2_tmp1.json")); }
std::vector<exchange::sailor_measurement> one(const std::string& kind, const std::string& text, int degree = 1) {
  return {{kind, read(text), degree}};
}

const std::filesystem::path folder = std::filesystem::path(HETPLAN_SHARED_DIR) / "data" / "sailor" / "sailor" / "Planner";
std::string profile_file(const std::string& model, const std::string& kind) {
  return (folder / "sailor_planner" / "profiles" / model / kind / "profile.json").string();
}
std::string sizes_file(const std::string& model, const std::string& kind, const std::string& name) {
  return (folder / "baselines" / "Metis" / "profiles" / model / kind / (name + ".json")).string();
}
exchange::sailor_measurement load(const std::string& model, const std::string& kind, int degree = 1) {
  return {kind, exchange::read_sailor_profile(io::json_document::load(profile_file(model, kind))), degree};
}

}  // namespace

TEST_CASE("a Sailor profile is read by microbatch size, degree and layer, in whatever order they stand") {
  const exchange::sailor_profile p = read(toy);
  CHECK(p.file == "profile.json");
  CHECK(p.layers == 2);
  REQUIRE(p.times.size() == 2);
  CHECK(p.times.at(4).size() == 1);
  CHECK(p.times.at(4).at(2)[0] == exchange::sailor_times{0.004, 0, 0.001});
  CHECK(p.times.at(1).at(1)[1] == exchange::sailor_times{0.02, 0.04, 0.006});
}

TEST_CASE("sizes and times make a chain that can be planned for several kinds of device") {
  const std::vector<exchange::sailor_measurement> measured{{"fast", read(toy), 2}, {"slow", read(toy), 1}};
  const planning_graph g = exchange::sailor_chain(read_sizes(sizes), 2, measured);
  CHECK(g.name() == "toy");
  REQUIRE(g.size() == 2);
  const layer& l = g[layer_id(1)];
  CHECK(l.name == "layer1");
  CHECK(l.weight == bytes(200));
  CHECK(l.activation == bytes(40));
  REQUIRE(g.edges().size() == 1);
  CHECK(g.edges()[0].forward == bytes(32));
  CHECK(*l.profile_for("fast") == layer_profile{"fast", {1, 4}, {0.011, 0.04}, {0.021, 0.08}});
  CHECK(*l.profile_for("slow") ==
        layer_profile{"slow", {1, 2}, {0.02, 0.04}, {0.04, 0.08}});  // one measured size: larger ones in proportion
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
  CHECK(message_of([&] { return exchange::sailor_chain(read_sizes(sizes), 0, measured); }) ==
        "sailor_chain: microbatch = 0; expected an integer >= 1");
  CHECK(message_of([&] { return exchange::sailor_chain(read_sizes(sizes), 1, {}); }) ==
        "sailor_chain: expected at least one measurement, got none");
}

TEST_CASE("times go onto a graph that exists and change nothing else of it") {
  const planning_graph built_in = zoo::model("gpt2", {});
  CHECK(exchange::with_sailor_profiles(built_in, {}) == built_in);
  for (const char* name : {"qwen-omni-frozen", "qwen3-0.6b"}) {  // with frozen layers, tied weights
    const planning_graph other = zoo::model(name, {});
    CHECK(exchange::with_sailor_profiles(other, {}) == other);
  }
  std::string text = "{\"1\": {\"1\": {";
  for (std::size_t l = 0; l < built_in.size(); ++l) {
    text += (l == 0 ? "\"" : ", \"") + std::to_string(l) + "\": [" + std::to_string(l + 1) + ", 0.5, 0]";
  }
  text += "}}}";
  const planning_graph g = exchange::with_sailor_profiles(built_in, one("board", text));
  REQUIRE(g.size() == built_in.size());
  for (const layer& l : g.layers()) {
    CHECK(l.profile_for("board")->forward_s.front() == l.id.value + 1.0);
    layer without = l;
    without.profiles.clear();
    CHECK(without == built_in[l.id]);
  }
  CHECK(exchange::with_sailor_profiles(g, one("board", text)) == g);  // replaced, not doubled
  CHECK(exchange::with_sailor_profiles(g, one("other", text))[layer_id(0)].profiles.size() == 2);
}

TEST_CASE("times that do not fit the graph say why") {
  const planning_graph g = exchange::sailor_chain(read_sizes(sizes), 1, one("a", toy));
  const std::string three = R"({"1": {"1": {"0": [1, 1, 1], "1": [1, 1, 1], "2": [1, 1, 1]}}})";
  CHECK(message_of([&] { return exchange::with_sailor_profiles(g, one("b", three)); }) ==
        "sailor: profile.json: expected times of the 2 layers of model \"toy\", got 3");
  CHECK(message_of([&] { return exchange::sailor_chain(read_sizes(sizes), 1, one("b", three)); }) ==
        "sailor: profile.json: expected times of the 2 layers of model \"toy\", got 3");
  CHECK(message_of([&] { return exchange::with_sailor_profiles(g, one("b", toy, 8)); }) ==
        "sailor: profile.json: expected a measured degree of tensor parallelism (1, 2), got 8");
  CHECK(message_of([&] { return exchange::with_sailor_profiles(g, one("", toy)); }) ==
        "sailor: profile.json: expected the name of a device kind, got \"\"");
  const std::vector<exchange::sailor_measurement> twice{{"b", read(toy)}, {"b", read(toy)}};
  CHECK(message_of([&] { return exchange::with_sailor_profiles(g, twice); }) ==
        "model \"toy\": layer \"layer0\" profile \"b\" appears twice");
}

TEST_CASE("a bad Sailor profile names its place") {
  CHECK(error("") == "profile.json: expected JSON, got an empty file");
  CHECK(error(toy.substr(0, 90)).starts_with("profile.json: line 2, column "));
  check_refusals(toy, read, "profile.json: ", R"(
    {} => expected at least one microbatch size, got an empty object
    [1] => expected an object from microbatch size to degree...
    {"1": {}} => /1: expected at least one degree of tensor parallelism, got an empty object
    {"1": {"1": {}}} => /1/1: expected at least one layer, got an empty object
    {"1": {"1": 3}} => /1/1: expected an object from layer to seconds, got 3
    "4": { => "four": { => /four: expected a microbatch size >= 1 as key, got "four"
    "4": { => "0": { => /0: expected a microbatch size >= 1 as key, got "0"
    "4": { => "1.0": { => /1: expected every microbatch size once, got "1" again
    "4": {"2": { => "4": {"2.5": { => /4/2.5: expected a degree of tensor parallelism >= 1 as key, got "2.5"
    "1": [0.04 => "2": [0.04 => /4/2/2: expected layers 0 to 1 (there are 2), got "2"
    "1": [0.04 => "0.0": [0.04 => /4/2/0: expected every layer once, got "0" again
    , "0": [0.004, 0, 0.001] => => /4/2/1: expected layers 0 to 0...
    "1": [0.04, 0.08, 0.003],  => => /1/1: expected 1 layers as in the first entry, got 2
    0.08 => -0.08 => /4/2/1/1: expected a number >= 0, got -0.08
    0.08 => "80 ms" => /4/2/1/1: expected a number >= 0, got "80 ms"
    0.08 => NaN => line 1, column ...
    , 0.003] => ] => /4/2/1: expected 3 numbers, seconds of forward, backward and update, got 2
  )");
}

TEST_CASE("bad layer sizes name their place") {
  check_refusals(sizes, read_sizes, "mbs2_tmp1.json: /model", R"(
    {} => : expected an object, got nothing
    [64, 80] => [64] => /parameters/activation_parameters_bytes: expected one entry per layer (2), got 1
    [64, 80] => [64, -80] => /parameters/activation_parameters_bytes/1: expected a number >= 0, got -80
    [100, 200] => [] => /parameters/parameters_per_layer_bytes: expected at least one layer, got an empty array
    "toy" => 7 => /model_name: expected a name, got 7
  )");
}

TEST_CASE("Sailor's files of the collection have the sums that were made apart") {
  if (!test::shared_data("data/sailor/sailor/Planner")) return;
  // Sums over the layers of an independent script: microbatch size, degree, seconds forward, backward, update.
  struct sums {
    const char *model, *kind;
    std::size_t layers;
    int size, degree;
    double forward_s, backward_s, update_s;
  };
  const sums summed[] = {
      {"OPT-350", "A100-40", 26, 1, 1, 0.060916, 0.145805, 0.076388}, {"OPT-350", "A100-40", 26, 8, 4, 0.145501, 0.329757, 0.024388},
      {"OPT-350", "V100-16", 26, 4, 1, 0.767907, 1.841836, 0.126178}, {"GPT-Neo-2.7", "A100-40", 34, 8, 2, 0.712083, 1.578056, 0.114206},
      {"LLAMA-3-8", "GH-96", 35, 1, 1, 1.573265, 3.102825, 0.32452},  {"OPT-350", "GH-96", 26, 128, 4, 1.072282, 2.481554, 0.014248}};
  for (const sums& s : summed) {
    INFO(s.model << " " << s.kind);
    const exchange::sailor_profile p = load(s.model, s.kind).profile;
    CHECK(p.layers == s.layers);
    exchange::sailor_times total;
    for (const exchange::sailor_times& t : p.times.at(s.size).at(s.degree)) {
      total.forward_s += t.forward_s;
      total.backward_s += t.backward_s;
      total.update_s += t.update_s;
    }
    CHECK(total.forward_s == near(s.forward_s));
    CHECK(total.backward_s == near(s.backward_s));
    CHECK(total.update_s == near(s.update_s));
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "profile.json") continue;
    INFO(entry.path().string());
    CHECK(exchange::read_sailor_profile(io::json_document::load(entry.path().string())).layers >= 26);
    ++files;
  }
  CHECK(files == 17);
}

TEST_CASE("three kinds of device that Sailor measured make one model, and a file of another model is found out") {
  if (!test::shared_data("data/sailor/sailor/Planner")) return;
  const exchange::layer_sizes opt = exchange::read_layer_sizes(io::json_document::load(sizes_file("OPT-350", "A100-40", "mbs2_tmp1")));
  const std::vector<exchange::sailor_measurement> measured{load("OPT-350", "A100-40"), load("OPT-350", "V100-16"),
                                                           load("OPT-350", "RTX-3090")};
  const planning_graph g = exchange::sailor_chain(opt, 2, measured);
  CHECK(g.size() == 26);
  CHECK(g.edges().size() == 25);
  double weight = 0;
  for (const layer& l : g.layers()) {
    weight += l.weight.value();
    CHECK(l.profiles.size() == 3);
  }
  CHECK(weight == 1629724672);  // the file's own total
  CHECK(g.edges()[0].forward == bytes(8388608));
  CHECK(g[layer_id(0)].profile_for("A100-40")->batch == std::vector<double>{1, 2, 4, 8});
  // For GPT-Neo on GH-96 the collection holds OPT-350's times: 26 layers for a model of 34.
  const exchange::layer_sizes neo = exchange::read_layer_sizes(io::json_document::load(sizes_file("GPT-Neo-2.7", "GH-96", "mbs1_tmp1")));
  const std::vector<exchange::sailor_measurement> wrong{load("GPT-Neo-2.7", "GH-96")};
  CHECK(message_of([&] { return exchange::sailor_chain(neo, 1, wrong); }) ==
        "sailor: " + profile_file("GPT-Neo-2.7", "GH-96") + ": expected times of the 34 layers of model \"GPT-Neo-2.7\", got 26");
}

}  // namespace test_sailor_profile
