// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>

#include "support/random_source.hpp"

namespace test_layer_sequence {

using namespace hetplan;

namespace {

/// Returns a random model: distinct attributes or defaults, weight groups, profiles and frozen layers.
planning_graph random_model(test::random_source& random, int size) {
  planning_graph_builder b("random", 2, random.integer(1, 9));
  for (int i = 0; i < size; ++i) {
    layer_spec l{.name = "layer" + std::to_string(i), .kind = random.chance(0.5) ? "conv" : ""};
    if (random.chance(0.8)) l.forward_flops = flops(random.integer(1, 999));
    if (!l.forward_flops || random.chance(0.2)) l.profiles.push_back({"phone", {1, 4}, {0.5, 1.0 * random.integer(1, 9)}, {}});
    if (random.chance(0.3)) l.backward_input_flops = flops(random.integer(0, 99));
    if (random.chance(0.3)) l.backward_weight_flops = flops(random.integer(0, 99));
    l.weight = bytes(random.integer(0, 99));
    if (random.chance(0.3)) l.weight_traffic = bytes(random.integer(0, 99));
    if (random.chance(0.3)) {
      l.weight_group = random.chance(0.5) ? "tied" : "frozen";
      l.weight = 7_B;
      l.trainable = l.weight_group == "tied";
    }
    l.activation = bytes(random.integer(0, 99));
    if (random.chance(0.3)) l.traffic = bytes(random.integer(0, 99));
    l.kv_bytes_per_token = bytes(random.integer(0, 99));
    b.add_layer(std::move(l));
  }
  const double density = random.unit();
  for (int u = 0; u < size; ++u) {
    for (int v = u + 1; v < size; ++v) {
      if (!random.chance(density)) continue;
      const bytes forward(random.integer(0, 50));
      b.add_edge(layer_id(u), layer_id(v), forward, bytes(random.integer(0, 50)));
    }
  }
  return std::move(b).build();
}

planning_graph plain(int layers, const std::vector<layer_edge>& edges) {
  planning_graph_builder b("toy");
  for (int i = 0; i < layers; ++i) b.add_layer({.name = std::string(1, static_cast<char>('a' + i)), .forward_flops = 1_FLOP});
  for (const layer_edge& e : edges) b.add_edge(e.from, e.to, e.forward, e.gradient);
  return std::move(b).build();
}

layer_edge edge(int from, int to, double forward, double gradient) {
  return {layer_id(from), layer_id(to), bytes(forward), bytes(gradient)};
}

}  // namespace

TEST_CASE("a stage is a piece of one chain or whole chains in a row") {
  layer_sequence s;  // chains: 0 1 2 | 3 | 4 5
  for (int i = 0; i < 6; ++i) s.blocks.push_back({layer_id(i)});
  s.chain_first = {0, 3, 4};
  CHECK(s.size() == 6);
  CHECK(s.chains() == 3);
  CHECK(s.chain_end(0) == 3);
  CHECK(s.chain_end(1) == 4);
  CHECK(s.chain_end(2) == 6);
  std::vector<std::size_t> chain;
  for (std::size_t b = 0; b < 6; ++b) chain.push_back(s.chain_of(b));
  CHECK(chain == std::vector<std::size_t>{0, 0, 0, 1, 2, 2});

  std::set<std::pair<std::size_t, std::size_t>> stages;
  for (std::size_t first = 0; first <= 8; ++first) {
    for (std::size_t last = 0; last <= 8; ++last) {
      if (s.is_stage(first, last)) stages.emplace(first, last);
    }
  }
  CHECK(stages == std::set<std::pair<std::size_t, std::size_t>>{{0, 1},
                                                                {0, 2},
                                                                {0, 3},
                                                                {1, 2},
                                                                {1, 3},
                                                                {2, 3},
                                                                {3, 4},
                                                                {4, 5},
                                                                {4, 6},
                                                                {5, 6},  // inside a chain
                                                                {0, 4},
                                                                {0, 6},
                                                                {3, 6}});  // whole chains
}

TEST_CASE("the layers of blocks come in the order of the row") {
  const layer_sequence s{{{layer_id(1), layer_id(4)}, {layer_id(0)}, {layer_id(2), layer_id(3)}}};
  CHECK(s.layers_of(0, 2) == std::vector<layer_id>{layer_id(1), layer_id(4), layer_id(0)});
  CHECK(s.layers_of(1, 3) == std::vector<layer_id>{layer_id(0), layer_id(2), layer_id(3)});
  CHECK(s.layers_of(1, 1).empty());
}

TEST_CASE("stages of random sequences are those of the definition") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    const auto chains = random.split(random.integer(6, 12), random.integer(1, 6));
    layer_sequence s;
    s.chain_first.clear();
    std::vector<std::size_t> chain_of;
    for (std::size_t c = 0; c < chains.size(); ++c) {
      s.chain_first.push_back(s.blocks.size());
      for (int i = 0; i < chains[c]; ++i) {
        chain_of.push_back(c);
        s.blocks.push_back({layer_id(s.blocks.size())});
      }
    }
    REQUIRE(s.chains() == chains.size());
    for (std::size_t first = 0; first < s.size(); ++first) {
      REQUIRE(s.chain_of(first) == chain_of[first]);
      for (std::size_t last = first + 1; last <= s.size(); ++last) {
        const bool one_chain = chain_of[first] == chain_of[last - 1];
        const bool begins = first == 0 || chain_of[first] != chain_of[first - 1];
        const bool ends = last == s.size() || chain_of[last] != chain_of[last - 1];
        REQUIRE(s.is_stage(first, last) == (one_chain || (begins && ends)));
      }
    }
  }
}

TEST_CASE("the sequence of a model has every layer as a block, and any range is a stage") {
  const layer_sequence s = sequence_of(plain(4, {edge(0, 2, 1, 1), edge(1, 3, 1, 1)}));
  CHECK(s.blocks == std::vector<std::vector<layer_id>>{{layer_id(0)}, {layer_id(1)}, {layer_id(2)}, {layer_id(3)}});
  CHECK(s.chains() == 1);
  for (std::size_t first = 0; first < 4; ++first) {
    for (std::size_t last = first + 1; last <= 4; ++last) CHECK(s.is_stage(first, last));
  }
}

TEST_CASE("a chain view hands a tensor on until its last reader has it, by hand") {
  // b (10 bytes, gradient 1), c (30, 2) and d (20, 0) read a; d also reads b. Nobody reads c or d; e is isolated.
  const planning_graph g = plain(5, {edge(0, 1, 10, 1), edge(0, 2, 30, 2), edge(0, 3, 20, 0), edge(1, 3, 5, 7)});
  const planning_graph chain = chain_view(g);
  const std::vector<layer_edge> expected{edge(0, 1, 30, 2),          // a once, for its largest reader
                                         edge(1, 2, 30 + 5, 2 + 7),  // b's own tensor joins
                                         edge(2, 3, 20 + 5, 0 + 7),  // c took 30, d takes 20
                                         edge(3, 4, 0, 0)};          // nothing crosses
  CHECK(std::vector<layer_edge>(chain.edges().begin(), chain.edges().end()) == expected);
}

TEST_CASE("in a chain view layers run less often than others only at its ends") {
  planning_graph_builder b("ends", 4, 8);
  const auto add = [&](const char* name, layer_scope per, bool last) {
    layer_spec s{.name = name, .forward_flops = 8_FLOP};
    s.sequence.per = per;
    s.sequence.last_token = last;
    return b.add_layer(std::move(s));
  };
  const auto token = layer_scope::token, request = layer_scope::request;
  for (const char* tower : {"a", "b"}) add(tower, request, false);
  const layer_id text = add("text", token, false), late = add("late tower", request, false);
  const layer_id inner = add("inner head", token, true), talker = add("talker", token, false);
  for (const char* head : {"c", "d"}) b.add_edge(talker, add(head, token, true), 4_B);
  b.add_edge(text, inner, 4_B);
  b.add_edge(late, talker, 4_B);
  const planning_graph chain = chain_view(std::move(b).build());
  std::string how;
  for (const layer& l : chain.layers()) how += l.runs_per_request() ? 'r' : l.sequence.last_token ? 'l' : 't';
  CHECK(how == "rrttttll");
}

TEST_CASE("a chain is its own chain view") {
  const planning_graph g = plain(3, {edge(0, 1, 10, 3), edge(1, 2, 20, 0)});
  CHECK(chain_view(g) == g);
  const planning_graph one = plain(1, {});
  CHECK(chain_view(one) == one);
}

TEST_CASE("a chain view of any model keeps its layers and adds up every boundary") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int round = 0; round < 300; ++round) {
    INFO("round " << round);
    const planning_graph g = random_model(random, random.integer(1, 14));
    const planning_graph chain = chain_view(g);
    REQUIRE(chain.name() == g.name());
    REQUIRE(chain.bytes_per_parameter() == g.bytes_per_parameter());
    REQUIRE(chain.tokens_per_sample() == g.tokens_per_sample());
    REQUIRE(chain.size() == g.size());
    REQUIRE(std::vector<std::string>(chain.weight_groups().begin(), chain.weight_groups().end()) ==
            std::vector<std::string>(g.weight_groups().begin(), g.weight_groups().end()));
    REQUIRE(chain.edges().size() == g.size() - 1);
    for (std::size_t i = 0; i < g.size(); ++i) {
      layer kept = chain.layers()[i];
      REQUIRE(kept.largest_output == (i + 1 < g.size() ? chain.edges()[i].forward : 0_B));  // follows from the edges
      kept.largest_output = g.layers()[i].largest_output;
      REQUIRE(kept == g.layers()[i]);
    }
    for (std::size_t i = 0; i + 1 < g.size(); ++i) {
      double forward = 0, gradient = 0;
      for (std::size_t u = 0; u <= i; ++u) {
        double most = 0, most_gradient = 0;
        for (const layer_edge& e : g.edges()) {
          if (e.from.index() != u || e.to.index() <= i) continue;
          most = std::max(most, e.forward.value());
          most_gradient = std::max(most_gradient, e.gradient.value());
        }
        forward += most;
        gradient += most_gradient;
      }
      REQUIRE(chain.edges()[i] == edge(static_cast<int>(i), static_cast<int>(i) + 1, forward, gradient));
    }
  }
}

}  // namespace test_layer_sequence
