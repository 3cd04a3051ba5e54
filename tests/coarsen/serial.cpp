// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/coarsen/decomposition.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/message_of.hpp"
#include "support/random_source.hpp"

using namespace hetplan;
using decompose::serial;

namespace {

using nested = std::vector<std::vector<std::vector<int>>>;
using pair_set = std::set<std::pair<std::size_t, std::size_t>>;

planning_graph build(int layers, const std::vector<std::pair<int, int>>& edges) {
  planning_graph_builder b("toy");
  for (int i = 0; i < layers; ++i) b.add_layer({.name = "layer" + std::to_string(i), .forward_flops = 1_FLOP});
  for (const auto& [u, v] : edges) b.add_edge(layer_id(u), layer_id(v), 1_B);
  return std::move(b).build();
}

planning_graph random_model(test::random_source& random) {
  const int size = random.integer(1, 24);
  const double density = random.between(0, 3.0 / size);
  std::vector<std::pair<int, int>> edges;
  for (int u = 0; u < size; ++u) {
    for (int v = u + 1; v < size; ++v) {
      if (random.chance(v == u + 1 ? 0.6 : density)) edges.emplace_back(u, v);
    }
  }
  return build(size, edges);
}

coarsen::blocks blocks_of_model(std::size_t size, const std::vector<std::vector<int>>& layers) {
  coarsen::blocks b;
  b.block_of.resize(size);
  for (const auto& block : layers) {
    for (const int l : block) b.block_of[static_cast<std::size_t>(l)] = b.layers.size();
    b.layers.emplace_back();
    for (const int l : block) b.layers.back().emplace_back(l);
  }
  return b;
}

/// Returns layers by block by chain.
nested chains_of(const layer_sequence& s) {
  nested all;
  for (std::size_t c = 0; c < s.chains(); ++c) {
    all.emplace_back();
    for (std::size_t b = s.chain_first[c]; b < s.chain_end(c); ++b) {
      all.back().emplace_back();
      for (const layer_id l : s.blocks[b]) all.back().back().push_back(l.value);
    }
  }
  return all;
}

/// Returns the edges between different blocks, each once.
pair_set quotient(const planning_graph& model, const std::vector<std::size_t>& block_of) {
  pair_set edges;
  for (const layer_edge& e : model.edges()) {
    const std::size_t u = block_of[e.from.index()], v = block_of[e.to.index()];
    if (u != v) edges.emplace(u, v);
  }
  return edges;
}

bool has_cycle(std::size_t size, pair_set edges) {
  std::vector<char> gone(size, 0);
  for (std::size_t round = 0; round < size; ++round) {
    for (std::size_t b = 0; b < size; ++b) {
      if (gone[b] || std::any_of(edges.begin(), edges.end(), [&](const auto& e) { return e.second == b; })) continue;
      gone[b] = 1;
      std::erase_if(edges, [&](const auto& e) { return e.first == b; });
    }
  }
  return !edges.empty();
}

/// Returns a random partition; most have cycles between blocks.
coarsen::blocks random_partition(test::random_source& random, const planning_graph& model) {
  std::vector<std::vector<int>> layers(1 + random.index(model.size()));
  for (const layer& l : model.layers()) layers[random.index(layers.size())].push_back(l.id.value);
  std::erase_if(layers, [](const auto& block) { return block.empty(); });
  for (auto& block : layers) random.shuffle(block);
  return blocks_of_model(model.size(), layers);
}

/// Returns a random partition without cycles, with blocks in any order.
coarsen::blocks random_blocks(test::random_source& random, const planning_graph& model) {
  std::vector<std::vector<int>> layers;
  if (random.chance(0.5)) {  // consecutive layers
    int next = 0;
    const int all = static_cast<int>(model.size());
    for (const int size : random.split(all, random.integer(1, all))) {
      layers.emplace_back();
      for (int i = 0; i < size; ++i) layers.back().push_back(next++);
    }
  } else {
    for (const auto& block : coarsen::merge_small(model, {.share = random.unit()}).layers) {
      layers.emplace_back();
      for (const layer_id l : block) layers.back().push_back(l.value);
    }
  }
  if (random.chance(0.7)) random.shuffle(layers);
  for (auto& block : layers) random.shuffle(block);
  return blocks_of_model(model.size(), layers);
}

/// Returns each block's position in the sequence, found by its layers.
std::vector<std::size_t> positions(const layer_sequence& s, const coarsen::blocks& b) {
  std::vector<std::size_t> at(b.size(), s.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    REQUIRE(std::is_sorted(s.blocks[i].begin(), s.blocks[i].end()));
    const std::size_t k = b.block_of[s.blocks[i].front().index()];
    REQUIRE(at[k] == s.size());
    at[k] = i;
    auto sorted = b.layers[k];
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(s.blocks[i] == sorted);
  }
  return at;
}

std::string refusal(const planning_graph& model, const coarsen::blocks& b) {
  return test::message_of([&] { return serial(model, b); });
}

}  // namespace

TEST_CASE("a chain is one chain, a diamond four, loose layers one each") {
  CHECK(chains_of(serial(build(3, {{0, 1}, {1, 2}}))) == nested{{{0}, {1}, {2}}});
  CHECK(chains_of(serial(build(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}))) == nested{{{0}}, {{1}}, {{2}}, {{3}}});
  CHECK(chains_of(serial(build(2, {}))) == nested{{{0}}, {{1}}});
}

TEST_CASE("two towers that join are a chain each, listed one after the other, and the join begins the third") {
  // 0 -> 2 -> 4 and 1 -> 3 -> 5 meet in 6 -> 7: numbers alternate between the towers, the sequence does not.
  const layer_sequence s = serial(build(8, {{0, 2}, {2, 4}, {1, 3}, {3, 5}, {4, 6}, {5, 6}, {6, 7}}));
  CHECK(chains_of(s) == nested{{{0}, {2}, {4}}, {{1}, {3}, {5}}, {{6}, {7}}});
}

TEST_CASE("a residual block's skip cuts the chain at both of its ends until a block holds it all") {
  const planning_graph g = build(6, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {1, 4}, {4, 5}});
  CHECK(chains_of(serial(g)) == nested{{{0}, {1}}, {{2}, {3}}, {{4}, {5}}});
  const auto whole = blocks_of_model(6, {{0}, {1, 2, 3, 4}, {5}});
  CHECK(chains_of(serial(g, whole)) == nested{{{0}, {1, 2, 3, 4}, {5}}});
}

TEST_CASE("parallel edges between two blocks count once") {
  const planning_graph g = build(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}});
  CHECK(chains_of(serial(g, blocks_of_model(4, {{0, 1}, {2, 3}}))) == nested{{{0, 1}, {2, 3}}});
}

TEST_CASE("of the chains that are ready the one with the smallest block is next, in any numbering of the blocks") {
  // Two separate chains, 0 -> 1 and 2 -> 3. Layers 3, 0, 1, 2 are blocks 0, 1, 2, 3, so the chain 2 -> 3 has the smallest block.
  const planning_graph g = build(4, {{0, 1}, {2, 3}});
  CHECK(chains_of(serial(g, blocks_of_model(4, {{3}, {0}, {1}, {2}}))) == nested{{{2}, {3}}, {{0}, {1}}});
  CHECK(chains_of(serial(g)) == nested{{{0}, {1}}, {{2}, {3}}});
}

TEST_CASE("what is no partition of the layers is refused with what is wrong") {
  const planning_graph g = build(3, {{0, 1}, {1, 2}});
  CHECK(refusal(g, blocks_of_model(3, {{0}, {1}, {2}})) == "no error");
  const std::string cyclic = refusal(g, blocks_of_model(3, {{0, 2}, {1}}));
  CHECK(cyclic.find("is on a cycle; expected a partition whose blocks form a DAG") != std::string::npos);
  CHECK(refusal(g, blocks_of_model(2, {{0}, {1}})) == "serial: block_of has 2 entries; expected 3, one for each layer of the model");
  CHECK(refusal(g, blocks_of_model(3, {{0}, {}, {1, 2}})) == "serial: block 1 is empty; expected at least one layer");
  CHECK(refusal(g, blocks_of_model(3, {{0}, {1}})) == "serial: the blocks hold 2 layers; expected 3, one for each layer of the model");
  CHECK(refusal(g, blocks_of_model(3, {{0}, {1, 2, 1}})) == "serial: layer 1 \"layer1\" is in a block twice; expected once");
  auto b = blocks_of_model(3, {{0}, {1}, {2}});
  b.layers[1].emplace_back(3);
  CHECK(refusal(g, b) == "serial: block 1 holds layer 3, which the model lacks");
  b.layers[1].back() = layer_id{};
  CHECK(refusal(g, b) == "serial: block 1 holds layer -1, which the model lacks");
  b.layers[1].pop_back();
  b.block_of[2] = 0;
  CHECK(refusal(g, b) == "serial: layer 2 \"layer2\" is in block 2, but block_of says 0");
}

TEST_CASE("a partition is refused exactly if its blocks form a cycle") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  int cyclic = 0, acyclic = 0;
  for (int round = 0; round < 600; ++round) {
    INFO("round " << round);
    const planning_graph g = random_model(random);
    const coarsen::blocks b = random_partition(random, g);
    if (has_cycle(b.size(), quotient(g, b.block_of))) {
      ++cyclic;
      REQUIRE_THROWS_AS(serial(g, b), invalid_input);
    } else {
      ++acyclic;
      REQUIRE(serial(g, b).size() == b.size());
    }
  }
  CHECK(cyclic > 50);
  CHECK(acyclic > 50);
}

TEST_CASE("chains of random blocks are serial and maximal, and no edge points back") {
  const std::uint64_t seed = test::first_seed() + 1;
  INFO("seed " << seed);
  test::random_source random(seed);
  int longer = 0;
  for (int round = 0; round < 400; ++round) {
    INFO("round " << round);
    const planning_graph g = random_model(random);
    const coarsen::blocks b = random_blocks(random, g);
    const layer_sequence s = serial(g, b);
    REQUIRE(s.size() == b.size());
    const auto at = positions(s, b);

    pair_set edges;
    for (const auto& [u, v] : quotient(g, b.block_of)) {
      REQUIRE(at[u] < at[v]);
      edges.emplace(at[u], at[v]);
    }
    std::vector<int> out(s.size(), 0), in(s.size(), 0);
    for (const auto& [u, v] : edges) {
      ++out[u];
      ++in[v];
    }
    REQUIRE(s.chain_first.front() == 0);
    for (std::size_t i = 1; i < s.size(); ++i) {
      if (s.chain_of(i - 1) != s.chain_of(i)) continue;
      REQUIRE(edges.contains({i - 1, i}));
      REQUIRE(out[i - 1] == 1);
      REQUIRE(in[i] == 1);
      ++longer;
    }
    for (const auto& [u, v] : edges) {
      if (out[u] == 1 && in[v] == 1) REQUIRE(s.chain_of(u) == s.chain_of(v));
    }

    // Of the chains ready at a time, the one with the smallest block is next.
    std::vector<std::size_t> smallest(s.chains(), b.size());
    for (std::size_t k = 0; k < b.size(); ++k) smallest[s.chain_of(at[k])] = std::min(smallest[s.chain_of(at[k])], k);
    for (std::size_t next = 0; next < s.chains(); ++next) {
      for (std::size_t later = next + 1; later < s.chains(); ++later) {
        const bool waits = std::any_of(edges.begin(), edges.end(), [&](const auto& e) {
          return s.chain_of(e.second) == later && s.chain_of(e.first) >= next && s.chain_of(e.first) != later;
        });
        REQUIRE((waits || smallest[next] < smallest[later]));
      }
    }
  }
  CHECK(longer > 100);
}

TEST_CASE("every layer as a block is what no blocks means") {
  const planning_graph g = zoo::model("resnet50");
  CHECK(serial(g) == serial(g, coarsen::each_layer(g)));
  CHECK(serial(g).size() == g.size());
}

TEST_CASE("the towers of a multimodal model are chains of their own, and a language model's blocks one chain") {
  const planning_graph g = zoo::model("qwen-omni");
  const layer_sequence s = serial(g, coarsen::merge_small(g));
  const auto is_tower = [&](std::size_t chain, const std::string& prefix) {
    for (std::size_t b = s.chain_first[chain]; b < s.chain_end(chain); ++b) {
      for (const layer_id l : s.blocks[b]) {
        if (g[l].name.rfind(prefix, 0) != 0) return false;
      }
    }
    return s.chain_end(chain) - s.chain_first[chain] >= 3;
  };
  for (const std::string prefix : {"audio.", "vision.", "text.", "talker."}) {
    INFO(prefix);
    int towers = 0;
    for (std::size_t c = 0; c < s.chains(); ++c) towers += is_tower(c, prefix) ? 1 : 0;
    const bool alone = prefix == "audio." || prefix == "vision.";
    CHECK(towers == (alone ? 1 : 0));
  }
  CHECK(s.chains() > 3);
  CHECK(s.chains() < 20);

  const planning_graph words = zoo::model("qwen3-1.7b");
  CHECK(serial(words, coarsen::merge_small(words)).chains() == 1);
  CHECK(serial(words).chains() > 100);
}
