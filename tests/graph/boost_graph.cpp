// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/range/iterator_range.hpp>
#include <catch2/catch.hpp>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/graph/planning_graph_builder.hpp>
#include <hetplan/graph/topological_order.hpp>

using namespace hetplan;

namespace {

using named_edge = std::tuple<std::string, std::string, double, double>;

/// A random DAG whose layers and edges are given in random order.
struct shuffled_dag {
  std::vector<std::string> names;  ///< in the hidden topological order
  std::vector<named_edge> edges;   ///< sorted

  shuffled_dag(std::mt19937_64& random, int size, double density) {
    std::uniform_real_distribution<double> unit(0, 1);
    for (int i = 0; i < size; ++i) names.push_back("layer" + std::to_string(i));
    std::shuffle(names.begin(), names.end(), random);
    for (std::size_t u = 0; u < names.size(); ++u) {
      for (std::size_t v = u + 1; v < names.size(); ++v) {
        if (unit(random) < density) edges.emplace_back(names[u], names[v], std::floor(1000 * unit(random)), std::floor(3 * unit(random)));
      }
    }
    std::sort(edges.begin(), edges.end());
  }

  [[nodiscard]] planning_graph build(std::mt19937_64& random) const {
    auto layers = names;
    auto order = edges;
    std::shuffle(layers.begin(), layers.end(), random);
    std::shuffle(order.begin(), order.end(), random);
    planning_graph_builder b("random");
    for (const std::string& name : layers) {
      b.add_layer({.name = name, .forward_flops = flops(static_cast<double>(name.size())), .weight = weight_of(name)});
    }
    for (const auto& [u, v, there, back] : order) b.add_edge(u, v, bytes(there), bytes(back));
    return std::move(b).build();
  }
  [[nodiscard]] static bytes weight_of(const std::string& name) { return bytes(std::stod(name.substr(5))); }
};

}  // namespace

TEST_CASE("random DAGs given in random order come out topological, with the same named layers and edges") {
  const unsigned seed = 20250101;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    INFO("trial " << trial);
    const shuffled_dag dag(random, 1 + trial % 14, 0.1 + 0.05 * (trial % 10));
    const planning_graph g = dag.build(random);

    REQUIRE(g.size() == dag.names.size());
    std::vector<std::string> names;
    for (const layer& l : g.layers()) {
      names.push_back(l.name);
      CHECK(g[l.id].name == l.name);
      CHECK(g.find(l.name) == l.id);
      CHECK(l.weight == shuffled_dag::weight_of(l.name));  // the attributes moved with their layer
    }
    CHECK(std::is_permutation(names.begin(), names.end(), dag.names.begin()));
    std::vector<named_edge> edges;
    for (const layer_edge& e : g.edges()) {
      REQUIRE(e.from < e.to);
      edges.emplace_back(g[e.from].name, g[e.to].name, e.forward.value(), e.gradient.value());
    }
    std::sort(edges.begin(), edges.end());
    CHECK(edges == dag.edges);
  }
}

TEST_CASE("in- and out-edges, edge index and Boost.Graph's own view agree") {
  const unsigned seed = 99;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const planning_graph g = shuffled_dag(random, 12, 0.35).build(random);
    const csr_graph b = boost_graph(g);
    REQUIRE(boost::num_vertices(b) == g.size());
    REQUIRE(boost::num_edges(b) == g.edges().size());
    for (const layer& l : g.layers()) {
      const std::size_t v = l.id.index();
      std::vector<std::size_t> entering, leaving;
      for (const auto& e : boost::make_iterator_range(boost::in_edges(v, b))) entering.push_back(boost::get(boost::edge_index, b, e));
      for (const auto& e : boost::make_iterator_range(boost::out_edges(v, b))) leaving.push_back(boost::get(boost::edge_index, b, e));
      std::sort(entering.begin(), entering.end());
      const auto in = g.in_edges(l.id);
      CHECK(entering == std::vector<std::size_t>(in.begin(), in.end()));  // ordered by source, as edges() is
      CHECK(boost::in_degree(v, b) == in.size());
      for (const std::uint32_t e : in) CHECK(g.edges()[e].to == l.id);

      const auto out = g.out_edges(l.id);
      REQUIRE(leaving.size() == out.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        CHECK(&g.edges()[leaving[i]] == &out[i]);
        CHECK(out[i].from == l.id);
        if (i > 0) CHECK(out[i - 1].to < out[i].to);
      }
    }
    for (const auto& e : boost::make_iterator_range(boost::edges(b))) {
      const layer_edge& mine = g.edges()[boost::get(boost::edge_index, b, e)];
      CHECK(boost::source(e, b) == mine.from.index());
      CHECK(boost::target(e, b) == mine.to.index());
    }
  }
}

TEST_CASE("Boost.Graph's topological sort and longest paths run on a planning graph directly") {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    const planning_graph g = shuffled_dag(random, 10, 0.3).build(random);
    const csr_graph b = boost_graph(g);
    std::vector<std::size_t> reversed;
    boost::topological_sort(b, std::back_inserter(reversed), boost::vertex_index_map(boost::get(boost::vertex_index, b)));
    std::vector<std::size_t> position(g.size());
    for (std::size_t i = 0; i < reversed.size(); ++i) position[reversed[i]] = reversed.size() - i;
    for (const layer_edge& e : g.edges()) CHECK(position[e.from.index()] < position[e.to.index()]);

    // Hops on the longest path from layer 0, by in_edges() here and as lengths of -1 there.
    std::vector<int> hops(g.size(), -1);
    hops[0] = 0;
    for (const layer& l : g.layers()) {
      for (const std::uint32_t e : g.in_edges(l.id)) {
        const int before = hops[g.edges()[e].from.index()];
        if (before >= 0) hops[l.id.index()] = std::max(hops[l.id.index()], before + 1);
      }
    }
    using edge = boost::graph_traits<csr_graph>::edge_descriptor;
    std::vector<int> theirs(g.size());
    boost::dag_shortest_paths(
        b, 0UL, boost::distance_map(theirs.data()).weight_map(boost::make_function_property_map<edge>([](const edge&) { return -1; })));
    for (std::size_t v = 0; v < g.size(); ++v) {
      CHECK(theirs[v] == (hops[v] >= 0 ? -hops[v] : std::numeric_limits<int>::max()));
    }
  }
}

TEST_CASE("a planning graph is bidirectional: algorithms run against the edges too") {
  planning_graph_builder b("diamond");
  for (const char* name : {"a", "b", "c", "d"}) b.add_layer({.name = name, .forward_flops = 1_FLOP});
  b.add_edge("a", "b", 1_B);
  b.add_edge("a", "c", 1_B);
  b.add_edge("b", "d", 1_B);
  b.add_edge("c", "d", 1_B);
  const planning_graph g = std::move(b).build();
  const csr_graph theirs = boost_graph(g);
  std::vector<std::size_t> order;
  const auto reversed = boost::make_reverse_graph(theirs);
  boost::topological_sort(reversed, std::back_inserter(order), boost::vertex_index_map(boost::get(boost::vertex_index, theirs)));
  REQUIRE(order.size() == 4);
  CHECK(order.front() == 0);  // the reverse graph's last is our source
  CHECK(order.back() == 3);
}

TEST_CASE("the topological order takes the smallest ready node each time, and stops before a cycle") {
  using pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto order = [](std::size_t n, const pairs& edges) { return topological_order(n, edges); };
  CHECK(order(0, {}).empty());
  CHECK(order(3, {}) == std::vector<std::size_t>{0, 1, 2});
  CHECK(order(4, {{3, 0}, {1, 0}}) == std::vector<std::size_t>{1, 2, 3, 0});
  CHECK(order(4, {{2, 0}, {3, 1}}) == std::vector<std::size_t>{2, 0, 3, 1});  // 0 before 3: it is ready by then
  CHECK(order(2, {{1, 0}, {1, 0}}) == std::vector<std::size_t>{1, 0});        // twice is as good as once
  CHECK(order(5, {{0, 1}, {1, 2}, {2, 1}, {2, 3}}) == std::vector<std::size_t>{0, 4});
}

TEST_CASE("a cycle is named by an edge that is on it, whatever hangs on either side") {
  const unsigned seed = 4;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 3 + random() % 8;
    std::vector<std::pair<std::size_t, std::size_t>> edges;
    for (std::size_t i = 0; i < 2 * n; ++i) {
      const std::size_t u = random() % n, v = random() % n;
      if (u != v) edges.emplace_back(u, v);
    }
    const auto order = topological_order(n, edges);
    if (order.size() == n) continue;
    const auto [from, to] = edge_on_cycle(n, edges, order);
    REQUIRE(std::find(edges.begin(), edges.end(), std::pair(from, to)) != edges.end());
    std::vector<char> reached(n, 0);  // on a cycle: its source can be reached from its target
    reached[to] = 1;
    for (std::size_t round = 0; round < n; ++round) {
      for (const auto& [u, v] : edges) reached[v] = static_cast<char>(reached[v] | reached[u]);
    }
    CHECK(reached[from]);
  }
}
