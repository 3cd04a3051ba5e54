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

#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <boost/range/iterator_range.hpp>
#include <catch2/catch.hpp>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/graph/planning_graph.hpp>

using namespace hetplan;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<planning_graph>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<planning_graph>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<planning_graph>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<planning_graph>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<planning_graph, layer_id, boost::vertex_index_t>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<planning_graph, layer_edge, boost::edge_index_t>));

namespace {

using named_edge = std::tuple<std::string, std::string, double, double>;

/// A random DAG whose layers and edges are added in random order.
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
      CHECK(l.weight == shuffled_dag::weight_of(l.name));  // attributes move with their layer
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

TEST_CASE("in- and out-edges, neighbours, degrees and both indices are those of the planning graph") {
  const unsigned seed = 99;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const planning_graph g = shuffled_dag(random, 12, 0.35).build(random);
    REQUIRE(num_vertices(g) == g.size());
    REQUIRE(num_edges(g) == g.edges().size());
    std::size_t entering = 0, leaving = 0;
    layer_id next(0);
    for (const layer_id l : boost::make_iterator_range(vertices(g))) {
      CHECK(l == next);
      next = layer_id(l.value + 1);
      CHECK(get(boost::vertex_index, g, l) == l.index());
      for (const layer_edge& e : boost::make_iterator_range(in_edges(l, g))) {
        CHECK(target(e, g) == l);
        ++entering;
      }
      for (const layer_edge& e : boost::make_iterator_range(out_edges(l, g))) {
        CHECK(source(e, g) == l);
        ++leaving;
      }
      const auto [first, last] = adjacent_vertices(l, g);
      CHECK(std::equal(first, last, g.out_edges(l).begin(), g.out_edges(l).end(),
                       [](layer_id to, const layer_edge& e) { return to == e.to; }));
      CHECK(in_degree(l, g) + out_degree(l, g) == degree(l, g));
      CHECK(in_degree(l, g) == g.in_edges(l).size());
    }
    CHECK(next.index() == g.size());
    CHECK(entering == g.edges().size());
    CHECK(leaving == g.edges().size());
    for (const layer_edge& e : boost::make_iterator_range(edges(g))) CHECK(g.edges()[get(boost::edge_index, g, e)] == e);
  }
}

TEST_CASE("Boost.Graph's sorts, searches and shortest paths run on a planning graph directly") {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 40; ++trial) {
    const planning_graph g = shuffled_dag(random, 10, 0.3).build(random);
    std::vector<layer_id> reversed;
    boost::topological_sort(g, std::back_inserter(reversed));
    std::vector<std::size_t> position(g.size());
    for (std::size_t i = 0; i < reversed.size(); ++i) position[reversed[i].index()] = reversed.size() - i;
    for (const layer_edge& e : g.edges()) CHECK(position[e.from.index()] < position[e.to.index()]);

    // Hops on the longest path and bytes on the cheapest path from layer 0, by in_edges().
    const int far = std::numeric_limits<int>::max();
    std::vector<int> hops(g.size(), far);
    std::vector<double> sent(g.size(), std::numeric_limits<double>::max());
    hops[0] = 0;
    sent[0] = 0;
    for (const layer& l : g.layers()) {
      for (const std::uint32_t i : g.in_edges(l.id)) {
        const layer_edge& e = g.edges()[i];
        if (hops[e.from.index()] == far) continue;
        hops[l.id.index()] = std::min(hops[l.id.index()], hops[e.from.index()] - 1);
        sent[l.id.index()] = std::min(sent[l.id.index()], sent[e.from.index()] + e.forward.value());
      }
    }
    const auto by_layer = [&](auto& all) { return boost::make_iterator_property_map(all.begin(), get(boost::vertex_index, g)); };
    const auto weight = [](auto f) { return boost::weight_map(boost::make_function_property_map<layer_edge>(f)); };
    std::vector<int> their_hops(g.size());
    boost::dag_shortest_paths(g, layer_id(0), weight([](const layer_edge&) { return -1; }).distance_map(by_layer(their_hops)));
    CHECK(their_hops == hops);
    std::vector<double> their_sent(g.size());
    std::vector<layer_id> before(g.size());
    boost::dijkstra_shortest_paths(
        g, layer_id(0),
        weight([](const layer_edge& e) { return e.forward.value(); }).distance_map(by_layer(their_sent)).predecessor_map(by_layer(before)));
    CHECK(their_sent == sent);

    std::size_t reached = 0;
    struct count : boost::default_bfs_visitor {
      std::size_t* n;
      explicit count(std::size_t* seen) : n(seen) {}
      void discover_vertex(layer_id, const planning_graph&) const { ++*n; }
    };
    boost::breadth_first_search(g, layer_id(0), boost::visitor(count(&reached)));
    CHECK(reached == static_cast<std::size_t>(std::count_if(hops.begin(), hops.end(), [&](int h) { return h != far; })));

    std::vector<int> component(g.size());
    CHECK(boost::strong_components(g, by_layer(component)) == static_cast<int>(g.size()));
  }
}

TEST_CASE("a planning graph is bidirectional: algorithms run against the edges too, and on a part of it") {
  planning_graph_builder b("diamond");
  for (const char* name : {"a", "b", "c", "d"}) b.add_layer({.name = name, .forward_flops = 1_FLOP});
  b.add_edge("a", "b", 1_B);
  b.add_edge("a", "c", 1_B);
  b.add_edge("b", "d", 1_B);
  b.add_edge("c", "d", 1_B);
  const planning_graph g = std::move(b).build();
  std::vector<layer_id> order;
  const auto reversed = boost::make_reverse_graph(g);
  boost::topological_sort(reversed, std::back_inserter(order));
  REQUIRE(order.size() == 4);
  CHECK(order.front() == layer_id(0));  // last in the reverse graph
  CHECK(order.back() == layer_id(3));

  const auto around_b = [](layer_id l) { return l != layer_id(1); };
  const boost::filtered_graph<planning_graph, boost::keep_all, decltype(around_b)> without_b(g, {}, around_b);
  CHECK(boost::distance(edges(without_b)) == 2);
}

TEST_CASE("the topological order takes the smallest ready node each time, and stops before a cycle") {
  using pairs = std::vector<std::pair<std::size_t, std::size_t>>;
  const auto order = [](std::size_t n, const pairs& edges) { return topological_order(n, edges); };
  CHECK(order(0, {}).empty());
  CHECK(order(3, {}) == std::vector<std::size_t>{0, 1, 2});
  CHECK(order(4, {{3, 0}, {1, 0}}) == std::vector<std::size_t>{1, 2, 3, 0});
  CHECK(order(4, {{2, 0}, {3, 1}}) == std::vector<std::size_t>{2, 0, 3, 1});  // 0 precedes 3 because it is ready by then
  CHECK(order(2, {{1, 0}, {1, 0}}) == std::vector<std::size_t>{1, 0});        // duplicate edges are harmless
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
    std::vector<char> reached(n, 0);  // on a cycle: the target reaches the source
    reached[to] = 1;
    for (std::size_t round = 0; round < n; ++round) {
      for (const auto& [u, v] : edges) reached[v] = static_cast<char>(reached[v] | reached[u]);
    }
    CHECK(reached[from]);
  }
}
