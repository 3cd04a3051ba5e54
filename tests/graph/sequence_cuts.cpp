// SPDX-License-Identifier: BSL-1.0
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>

#include "support/random_source.hpp"

namespace test_sequence_cuts {

using namespace hetplan;

namespace {

using ports = std::vector<std::size_t>;
using bytes_pair = std::pair<double, double>;
using row = std::tuple<std::size_t, std::size_t, std::size_t, double, double>;  // from, port's block, tensor, forward bytes, gradient bytes

planning_graph build(int layers, const std::vector<layer_edge>& edges) {
  planning_graph_builder b("toy");
  for (int i = 0; i < layers; ++i) b.add_layer({.name = std::to_string(i), .forward_flops = 1_FLOP});
  for (const layer_edge& e : edges) b.add_edge(e.from, e.to, e.forward, e.gradient);
  return std::move(b).build();
}
layer_edge edge(int from, int to, double forward, double gradient) {
  return {layer_id(from), layer_id(to), bytes(forward), bytes(gradient)};
}
std::vector<row> rows(const sequence_cuts& cuts, std::size_t boundary) {
  std::vector<row> all;
  for (const crossing& c : cuts.crossings(boundary)) {
    all.emplace_back(c.from, cuts.ports(boundary)[c.port], c.tensor, c.forward_bytes, c.gradient_bytes);
  }
  return all;
}
layer_sequence blocks(const std::vector<std::vector<int>>& numbers) {
  layer_sequence s;
  for (const auto& block : numbers) {
    s.blocks.emplace_back();
    for (const int l : block) s.blocks.back().emplace_back(l);
  }
  return s;
}

}  // namespace

TEST_CASE("of a chain with a skip every boundary knows what crosses it and who reads it") {
  // 0 -> 1 -> 2 -> 3 and 0 -> 3.
  const planning_graph g = build(4, {edge(0, 1, 10, 9), edge(1, 2, 20, 5), edge(2, 3, 30, 0), edge(0, 3, 7, 3)});
  const sequence_cuts cuts(g, sequence_of(g));
  CHECK(cuts.ports(0) == ports{});
  CHECK(cuts.ports(1) == ports{1, 3});
  CHECK(cuts.ports(2) == ports{2, 3});
  CHECK(cuts.ports(3) == ports{3});
  CHECK(cuts.ports(4) == ports{});
  CHECK(rows(cuts, 1) == std::vector<row>{{0, 1, 0, 10, 9}, {0, 3, 0, 7, 3}});
  CHECK(rows(cuts, 2) == std::vector<row>{{1, 2, 1, 20, 5}, {0, 3, 0, 7, 3}});
  CHECK(rows(cuts, 3) == std::vector<row>{{2, 3, 2, 30, 0}, {0, 3, 0, 7, 3}});
  CHECK_FALSE(cuts.serial());

  CHECK(cuts.bytes_in(0, 4) == bytes_pair(0, 0));
  CHECK(cuts.bytes_in(1, 3) == bytes_pair(10, 9));
  CHECK(cuts.bytes_in(1, 4) == bytes_pair(10, 9));  // tensor of 0 once: the larger of 10 and 7
  CHECK(cuts.bytes_in(2, 3) == bytes_pair(20, 5));
  CHECK(cuts.bytes_in(2, 4) == bytes_pair(27, 8));
  CHECK(cuts.bytes_in(3, 4) == bytes_pair(37, 3));
  CHECK_FALSE(cuts.reads_from_before(0, 4));
  CHECK(cuts.reads_from_before(3, 4));

  CHECK(cuts.bytes_out(0, 1, {0, 1, 1, 1}) == bytes_pair(10, 9));   // one stage reads the tensor
  CHECK(cuts.bytes_out(0, 1, {0, 1, 1, 2}) == bytes_pair(17, 12));  // two stages read it, each its own bytes
  CHECK(cuts.bytes_out(0, 2, {0, 0, 1, 1}) == bytes_pair(27, 8));
  CHECK(cuts.bytes_out(1, 2, {0, 1, 2, 2}) == bytes_pair(20, 5));  // without 0's tensor, which bypasses this stage
  CHECK(cuts.bytes_out(0, 4, {0, 0, 0, 0}) == bytes_pair(0, 0));
}

TEST_CASE("a tensor crosses every boundary up to its last reader once, with what the readers behind it take") {
  const planning_graph g = build(4, {edge(0, 1, 10, 10), edge(1, 2, 20, 5), edge(2, 3, 30, 0), edge(0, 3, 7, 3)});
  const sequence_cuts cuts(g, sequence_of(g));
  CHECK(cuts.bytes_in(0, 4) == bytes_pair(0, 0));
  CHECK(cuts.bytes_in(1, 4) == bytes_pair(10, 10));  // tensor of 0 to 1 and 3: the larger of 10 and 7
  CHECK(cuts.bytes_in(2, 4) == bytes_pair(20 + 7, 5 + 3));
  CHECK(cuts.bytes_in(3, 4) == bytes_pair(30 + 7, 0 + 3));
  CHECK(cuts.bytes_in(4, 4) == bytes_pair(0, 0));
  const sequence_cuts halves(g, blocks({{0}, {1, 2, 3}}));  // nothing crosses inside a block
  CHECK(halves.bytes_in(1, 2) == bytes_pair(10, 10));
  CHECK(halves.bytes_in(2, 2) == bytes_pair(0, 0));
}

TEST_CASE("two towers: the second one reads nothing from the first, and the head reads both") {
  const planning_graph g = build(5, {edge(0, 1, 1, 1), edge(2, 3, 2, 2), edge(1, 4, 4, 0), edge(3, 4, 8, 8)});
  const sequence_cuts cuts(g, sequence_of(g));
  CHECK(cuts.ports(2) == ports{4});
  CHECK_FALSE(cuts.reads_from_before(2, 4));
  CHECK(cuts.reads_from_before(2, 5));
  CHECK(cuts.ports(3) == ports{3, 4});
  CHECK(rows(cuts, 3) == std::vector<row>{{2, 3, 2, 2, 2}, {1, 4, 1, 4, 0}});
  CHECK(cuts.bytes_in(2, 4) == bytes_pair(0, 0));
  CHECK(cuts.bytes_in(2, 5) == bytes_pair(4, 0));
  CHECK(cuts.bytes_in(4, 5) == bytes_pair(12, 8));
  CHECK(cuts.bytes_out(2, 4, {0, 0, 1, 1, 2}) == bytes_pair(8, 8));
  CHECK(cuts.bytes_out(0, 2, {0, 0, 1, 1, 2}) == bytes_pair(4, 0));
}

TEST_CASE("a tensor read twice inside a block crosses to it once, one read where it is made not at all") {
  const planning_graph g = build(4, {edge(0, 1, 99, 99), edge(0, 2, 5, 6), edge(0, 3, 7, 2), edge(1, 3, 1, 1)});
  const sequence_cuts cuts(g, blocks({{0, 1}, {2, 3}}));
  CHECK(rows(cuts, 1) == std::vector<row>{{0, 1, 0, 7, 6}, {0, 1, 1, 1, 1}});
  CHECK(cuts.bytes_in(1, 2) == bytes_pair(8, 7));
  CHECK(cuts.bytes_out(0, 1, {0, 1}) == bytes_pair(8, 7));
  CHECK(cuts.serial());
}

TEST_CASE("a sequence is serial if every block feeds the next one and no other") {
  const std::vector<layer_edge> chain{edge(0, 1, 1, 1), edge(1, 2, 1, 1), edge(2, 3, 1, 1)};
  const auto serial = [](int layers, const std::vector<layer_edge>& edges) {
    const planning_graph g = build(layers, edges);
    return sequence_cuts(g, sequence_of(g)).serial();
  };
  CHECK(serial(4, chain));
  CHECK(serial(1, {}));
  CHECK_FALSE(serial(5, chain));  // the last block is isolated
  std::vector<layer_edge> skip = chain;
  skip.push_back(edge(1, 3, 1, 1));
  CHECK_FALSE(serial(4, skip));
}

TEST_CASE("what stages of random cuts of a random DAG read and send is what the stage graph says") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  int fed = 0, several = 0;
  for (int round = 0; round < 400; ++round) {
    INFO("round " << round);
    const int size = random.integer(1, 14);
    const double density = random.between(0.05, 0.7);
    std::vector<layer_edge> edges;
    for (int u = 0; u < size; ++u) {
      for (int v = u + 1; v < size; ++v) {
        if (!random.chance(v == u + 1 ? 0.7 : density)) continue;
        const double forward = random.integer(0, 50);
        edges.push_back(edge(u, v, forward, random.integer(0, 50)));
      }
    }
    const planning_graph g = build(size, edges);
    layer_sequence s;
    for (const layer& l : g.layers()) {
      if (s.blocks.empty() || random.chance(0.7)) s.blocks.emplace_back();
      s.blocks.back().push_back(l.id);
    }
    const sequence_cuts cuts(g, s);
    for (int cut = 0; cut < 4; ++cut) {
      std::vector<std::size_t> first{0}, stage_of;
      plan p{.microbatches = 1};
      for (std::size_t b = 0; b < s.size(); ++b) {
        if (b == 0 || random.chance(0.5)) {
          if (b > 0) first.push_back(b);
          p.stages.push_back({.name = std::to_string(b), .devices = {{device_id(0)}}});
        }
        stage_of.push_back(p.stages.size() - 1);
        p.stages.back().layers.insert(p.stages.back().layers.end(), s.blocks[b].begin(), s.blocks[b].end());
      }
      first.push_back(s.size());
      const stage_graph quotient = make_stage_graph(p, g);
      for (std::size_t k = 0; k < p.stages.size(); ++k) {
        const auto sum = [&](const std::vector<std::size_t>& some) {
          bytes_pair all;
          for (const std::size_t e : some) {
            all.first += quotient.edges[e].forward_cut.value();
            all.second += quotient.edges[e].backward_cut.value();
          }
          return all;
        };
        const stage_graph::node& node = quotient.nodes[k];
        REQUIRE(cuts.bytes_in(first[k], first[k + 1]) == sum(node.in));
        REQUIRE(cuts.bytes_out(first[k], first[k + 1], stage_of) == sum(node.out));
        REQUIRE(cuts.reads_from_before(first[k], first[k + 1]) == !node.in.empty());
        fed += !node.in.empty();
        several += node.out.size() > 1;
      }
    }
    for (std::size_t b = 0; b <= s.size(); ++b) {  // the documented order
      const ports through = cuts.ports(b);
      REQUIRE(std::is_sorted(through.begin(), through.end()));
      const auto all = cuts.crossings(b);
      REQUIRE(std::is_sorted(all.begin(), all.end(), [](const crossing& x, const crossing& y) {
        return x.from != y.from ? x.from > y.from : std::pair(x.tensor, x.port) < std::pair(y.tensor, y.port);
      }));
    }
  }
  CHECK(fed > 400);
  CHECK(several > 200);
}

TEST_CASE("a tensor that thousands of layers read is kept once, not at every boundary before each of them") {
  const int readers = 4000;  // 8 million crossings
  std::vector<layer_edge> edges;
  for (int r = 1; r <= readers; ++r) {
    edges.push_back(edge(0, r, r == 3000 ? 70 : 10, 5));
    if (r > 1) edges.push_back(edge(r - 1, r, 1, 1));
  }
  const planning_graph g = build(readers + 1, edges);
  const layer_sequence s = sequence_of(g);
  const sequence_cuts cuts(g, s);
  CHECK(cuts.bytes_in(1, s.size()) == bytes_pair{70, 5});
  CHECK(cuts.bytes_in(2, s.size()) == bytes_pair{71, 6});
  CHECK(cuts.bytes_in(2, 100) == bytes_pair{11, 6});
  CHECK(cuts.bytes_in(3001, s.size()) == bytes_pair{11, 6});
  CHECK(cuts.ports(3990).size() == 11);
  CHECK(cuts.crossings(3990).size() == 12);
  CHECK_FALSE(cuts.serial());
  double carried = 0;
  for (std::size_t b = 0; b < s.size(); ++b) carried += cuts.bytes_in(b, s.size()).first;
  CHECK(carried == 3000 * 70 + 1000 * 10 + 3999);
}

}  // namespace test_sequence_cuts
