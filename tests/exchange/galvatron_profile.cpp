// SPDX-License-Identifier: BSL-1.0
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/exchange/galvatron_profile.hpp>
#include <hetplan/io/model_json.hpp>

#include "io/reading.hpp"
#include "support/by_hand.hpp"

namespace test_galvatron_profile {

using namespace hetplan;
using test::check_refusals;
using test::message_of;
using test::near;

namespace {

const std::string computation = R"({"layernum[2]_bsz1_seq512": 9.5, "layertype_0_bsz1_seq512": 2.0, "layertype_0_bsz4_seq512": 1.5,
 "layertype_0_bsz1_seq1024": 5.0, "layertype_other_0_bsz1_seq512": 6.0, "layertype_other_0_bsz4_seq512": 4.0, "layertype_other_0_bsz1_seq1024": 8.0})";
const std::string memory = R"({"1_1_8_sp": {"layernum[1]_bsz8_seq512_rank0_ms": 3.5},
 "layertype_0_sp": {"512": {"parameter_size": 100.0, "tp_activation_per_bsz_dict": {"1": 40.0, "2": 20.0, "checkpoint": 2.0}},
   "1024": {"parameter_size": 100.0, "tp_activation_per_bsz_dict": {"1": 80.0, "checkpoint": 4.0}}},
 "other_memory_pp_off_sp": {"512": {"model_states": {"1": 900.0, "2": 450.0}, "activation": {"1": 30.0}}, "1024": {"model_states": {"1": 900.0}, "activation": {"1": 60.0}}},
 "other_memory_pp_on_first_sp": {"512": {"model_states": {"1": 400.0}, "activation": {"1": 10.0}}}})";
// Without batch sizes and sequence lengths, as older files have it; sequence parallel entries stand behind.
const std::string old_computation = R"({"layernum[6]_bsz2": 77.3, "layertype_0": 4.75})";
const std::string old_memory =
    R"({"layertype_0": {"parameter_size": 773.25, "tp_activation_per_bsz_dict": {"1": 300.0, "checkpoint": 16.0}},
 "other_memory_pp_off": {"model_states": 4000.0, "activation": 500.0},
 "layertype_0_sp": {"parameter_size": 1.0, "tp_activation_per_bsz_dict": {"1": 1.0}}})";
constexpr double megabyte = 1048576;

exchange::galvatron_computation times(const std::string& t) { return exchange::read_galvatron_computation(test::document(t, "f.json")); }
exchange::galvatron_memory sizes(const std::string& t) { return exchange::read_galvatron_memory(test::document(t, "m.json")); }

}  // namespace

TEST_CASE("profiles of Galvatron make a chain of layers between what is first and last") {
  const planning_graph g =
      exchange::galvatron_chain(times(computation), sizes(memory), {.device_kind = "a100", .layers = {3}, .sequence = "512"}, "llama");
  REQUIRE(g.size() == 5);
  CHECK(g.tokens_per_sample() == 512);
  const layer& first = g[layer_id(0)];
  CHECK(first.name == "first");
  CHECK(first.weight == bytes(100 * megabyte));
  CHECK(first.activation == bytes(10 * megabyte));
  CHECK(*first.profile_for("a100") == layer_profile{"a100", {1, 4}, {0.003, 0.008}, {0.006, 0.016}});  // half of the others' time
  const layer& l = g[layer_id(2)];
  CHECK(l.name == "layer1");
  CHECK(l.weight == bytes(100 * megabyte));
  CHECK(l.activation == bytes(40 * megabyte));
  CHECK(l.profile_for("a100")->forward_s == std::vector<double>{0.002, 0.006});
  CHECK(l.profile_for("a100")->backward_s[1] == near(0.012));
  CHECK(g[layer_id(4)].weight == bytes(112.5 * megabyte));  // half of the whole: the file has no last stage
  for (const layer_edge& e : g.edges()) CHECK(e.forward == bytes(2 * megabyte));
  CHECK(io::read_model(test::document(io::write_model(g))) == g);
}

TEST_CASE("older profiles of Galvatron tell no batch sizes") {
  const planning_graph g = exchange::galvatron_chain(times(old_computation), sizes(old_memory), {.layers = {2}}, "llama");
  REQUIRE(g.size() == 4);
  CHECK(g[layer_id(1)].profile_for("galvatron")->batch == std::vector<double>{1, 2});
  CHECK(g[layer_id(1)].profile_for("galvatron")->forward_s[1] == near(0.0095));
  CHECK(g[layer_id(1)].weight == bytes(773.25 * megabyte));  // the entry without sequence parallelism
  CHECK(g[layer_id(0)].weight == bytes(500 * megabyte));
  CHECK(g[layer_id(0)].profile_for("galvatron")->forward_s[0] == 0);
}

TEST_CASE("two types of layers, as an encoder and a decoder") {
  const std::string both = R"({"layertype_0_bsz1_seq512": 1.0, "layertype_1_bsz1_seq512": 2.0, "layertype_other_bsz1_seq[512,512]": 3.0})";
  const std::string held = R"({"layertype_0_sp": {"512": {"parameter_size": 1, "tp_activation_per_bsz_dict": {"1": 1, "checkpoint": 1}}},
   "layertype_1_sp": {"512": {"parameter_size": 2, "tp_activation_per_bsz_dict": {"1": 2, "checkpoint": 3}}},
   "other_memory_pp_off_sp": {"[512,512]": {"model_states": {"1": 8}, "activation": {"1": 2}}}})";
  const planning_graph g = exchange::galvatron_chain(times(both), sizes(held), {.layers = {2, 1}}, "t5");
  REQUIRE(g.size() == 5);
  CHECK(g[layer_id(3)].name == "layer1.0");
  CHECK(g[layer_id(3)].profile_for("galvatron")->forward_s[0] == near(0.002));
  CHECK(g[layer_id(0)].profile_for("galvatron")->forward_s[0] == near(0.0015));
  CHECK(g[layer_id(0)].weight == bytes(megabyte));
  CHECK(g.edges()[2].forward == bytes(3 * megabyte));
}

TEST_CASE("bad profiles of Galvatron are refused") {
  check_refusals(
      computation, [](const std::string& t) { return times(t); }, "f.json: ", R"(
    [] => expected an object of times, got an empty array
    {} => expected times of a layer, such as layertype_0, got none
    {"layertype_1": 2} => expected times of layertype_0, got none
    {"layertype_x": 2} => /layertype_x: expected a key as layertype_0_bsz8_seq512 or layertype_other_bsz8_seq512, got "layertype_x"
    {"layertype_0_bsz0": 2} => /layertype_0_bsz0: expected a key as...
    {"layertype_999": 2} => /layertype_999: expected a key as...
    "layertype_0_bsz1_seq512": 2.0 => "layertype_0_bsz1_seq512": -2 => /layertype_0_bsz1_seq512: expected a number >= 0, got -2
  )");
  check_refusals(
      memory, [](const std::string& t) { return sizes(t); }, "m.json: ", R"(
    {} => expected memory of a layer, such as layertype_0, got none
    {"layertype_1": {"parameter_size": 1, "tp_activation_per_bsz_dict": {"1": 1}}} => expected memory of layertype_0, got none
    "parameter_size": 100.0 => "parameters": 100.0 => /layertype_0_sp/512/parameter_size: expected a number >= 0, got nothing
    "1": 40.0 => "4": 40.0 => /layertype_0_sp/512/tp_activation_per_bsz_dict/1: expected a number...
    "model_states": {"1": 900.0, "2": 450.0} => "model_states": {"2": 450.0} => /other_memory_pp_off_sp/512/model_states/1: expected a number for degree 1, got nothing
  )");
  const auto chain = [](const exchange::galvatron_choice& c, const std::string& held = memory) {
    return message_of([&] { return exchange::galvatron_chain(times(computation), sizes(held), c, "m"); });
  };
  CHECK(chain({.layers = {3}}) == "f.json: expected the choice of a sequence length (1024, 512)");
  CHECK(chain({.layers = {3}, .sequence = "77"}) == "f.json: expected a sequence length of the file (1024, 512), got \"77\"");
  CHECK(chain({.layers = {3, 4}, .sequence = "512"}) == "f.json: expected a number of layers for each of 1 types, got 2");
  CHECK(chain({.layers = {0}, .sequence = "512"}) == "galvatron_chain: expected at least one layer, got none");
  const std::string no_checkpoint = test::with(memory, ", \"checkpoint\": 2.0", "");
  CHECK(chain({.layers = {3}, .sequence = "512"}, no_checkpoint) ==
        "m.json: expected what a checkpoint keeps, or the bytes between layers (--boundary), got neither");
  CHECK(chain({.layers = {3}, .sequence = "512", .boundary = bytes(5)}, no_checkpoint) == "no error");
}

}  // namespace test_galvatron_profile
