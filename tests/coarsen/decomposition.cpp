// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/coarsen/merge_small.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/message_of.hpp"

using namespace hetplan;

namespace test_decomposition {
namespace {

/// The chain a -> b -> c.
planning_graph chain_of_three() {
  planning_graph_builder b("toy");
  for (const char* name : {"a", "b", "c"}) b.add_layer({.name = name, .forward_flops = 1_FLOP});
  b.add_edge("a", "b", 1_B);
  b.add_edge("b", "c", 1_B);
  return std::move(b).build();
}

layer_sequence row_of(const std::vector<std::vector<int>>& blocks, std::vector<std::size_t> chain_first = {0}) {
  layer_sequence s{{}, std::move(chain_first)};
  for (const auto& block : blocks) {
    s.blocks.emplace_back();
    for (const int l : block) s.blocks.back().emplace_back(l);
  }
  return s;
}

/// Returns the error for a decomposition of the chain with this answer.
std::string refusal(const layer_sequence& answer) {
  const decompose::any_decomposition d = [&](const planning_graph&) { return answer; };
  return test::message_of<invalid_model>([&] { return d(chain_of_three()); });
}

}  // namespace

TEST_CASE("the decompositions that ship are the functions of which they are made, and are one of the model's") {
  for (const char* name : {"resnet50", "qwen-omni"}) {
    INFO(name);
    const planning_graph g = zoo::model(name);
    const layer_sequence serial = decompose::serial(g, coarsen::merge_small(g, {.share = 0.1}));
    CHECK(decompose::serial_chains{0.1}(g) == serial);
    CHECK(decompose::joined_chains{0.1}(g) == serial.joined());
    CHECK(decompose::light_row{30}(g) == light_blocks(g, 30));
    for (const decompose::any_decomposition& d :
         {decompose::any_decomposition(decompose::serial_chains{0.1}), decompose::any_decomposition(decompose::joined_chains{0.1}),
          decompose::any_decomposition(decompose::light_row{30})}) {
      CHECK(d(g).layers_of(0, d(g).size()).size() == g.size());
    }
    CHECK(decompose::any_decomposition(decompose::serial_chains{0.1})(g) == serial);
  }
}

TEST_CASE("a function is a decomposition; the layers of a block come sorted") {
  const decompose::any_decomposition whole = [](const planning_graph& g) {
    layer_sequence s{{{}}, {0}};
    for (const layer& l : g.layers()) s.blocks[0].insert(s.blocks[0].begin(), l.id);
    return s;
  };
  CHECK(whole(chain_of_three()) == row_of({{0, 1, 2}}));
  CHECK(refusal(row_of({{0}, {1}, {2}}, {0, 1, 2})) == "no error");
}

TEST_CASE("what is no decomposition of the model is refused with what is wrong") {
  const std::string who = "decomposition of \"toy\": ";
  CHECK(refusal(row_of({{0}, {1}})) == who + "layer \"c\" is in no block; expected every layer in one");
  CHECK(refusal(row_of({})) == who + "layer \"a\" is in no block; expected every layer in one");
  CHECK(refusal(row_of({{0}, {1}, {2, 1}})) == who + "layer \"b\" is in blocks 1 and 2; expected one");
  CHECK(refusal(row_of({{0}, {1, 1}, {2}})) == who + "layer \"b\" is in blocks 1 and 1; expected one");
  CHECK(refusal(row_of({{0}, {}, {1, 2}})) == who + "block 1 is empty; expected at least one layer");
  CHECK(refusal(row_of({{0}, {1, 3}, {2}})) == who + "block 1 holds layer 3, which the model lacks");
  CHECK(refusal(row_of({{0}, {1, -1}, {2}})) == who + "block 1 holds layer -1, which the model lacks");
  CHECK(refusal(row_of({{0}, {2}, {1}})) ==
        who + "the tensor of layer \"b\" leads from block 2 back to layer \"c\" in block 1; expected every edge forward or inside a block");
}

TEST_CASE("chains that begin nowhere, nowhere new or behind the end are refused") {
  const std::string who = "decomposition of \"toy\": ";
  const std::vector<std::vector<int>> blocks{{0}, {1}, {2}};
  CHECK(refusal(row_of(blocks, {})) == who + "the first chain begins nowhere; expected it at block 0");
  CHECK(refusal(row_of(blocks, {1})) == who + "the first chain begins nowhere; expected it at block 0");
  CHECK(refusal(row_of(blocks, {0, 2, 2})) == who + "chain 2 begins at block 2; expected one behind the chain before, below 3");
  CHECK(refusal(row_of(blocks, {0, 3})) == who + "chain 1 begins at block 3; expected one behind the chain before, below 3");
}

}  // namespace test_decomposition
