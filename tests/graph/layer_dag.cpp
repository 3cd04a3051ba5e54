// SPDX-License-Identifier: BSL-1.0
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <catch2/catch.hpp>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/message_of.hpp"
#include "support/random_source.hpp"

using namespace hetplan;

namespace test_layer_dag {
namespace {

struct operation {
  std::string name;
  double gflop = 0;
};
struct tensor {
  double there = 0, back = 0;
};
template <class Vertices>
using list_of = boost::adjacency_list<boost::vecS, Vertices, boost::directedS, operation, tensor>;
using rows_of = boost::compressed_sparse_row_graph<boost::directedS, operation, tensor>;

struct named_edge {
  std::string from, to;
  bytes there, back;

  friend bool operator==(const named_edge&, const named_edge&) = default;
  friend bool operator<(const named_edge& a, const named_edge& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); }
};

template <class Graph>
auto convert(const Graph& mine, const std::string& name = "mine") {
  return planning_graph_from(
      mine, [&](auto v) { return layer_spec{.name = mine[v].name, .forward_flops = mine[v].gflop * 1_GFLOP}; },
      [&](auto e) { return tensor_spec(bytes(mine[e].there), bytes(mine[e].back)); }, name);
}

template <class Graph>
void check_conversion(const Graph& mine) {
  const auto [model, vertex_of] = convert(mine);
  REQUIRE(model.size() == num_vertices(mine));
  REQUIRE(vertex_of.size() == model.size());
  for (const layer& l : model.layers()) {
    CHECK(l.name == mine[vertex_of[l.id.index()]].name);
    CHECK(l.forward_flops == mine[vertex_of[l.id.index()]].gflop * 1_GFLOP);
  }
  std::vector<named_edge> given, found;
  for (auto [e, last] = edges(mine); e != last; ++e) {
    given.push_back({mine[source(*e, mine)].name, mine[target(*e, mine)].name, bytes(mine[*e].there), bytes(mine[*e].back)});
  }
  for (const layer_edge& e : model.edges()) found.push_back({model[e.from].name, model[e.to].name, e.forward, e.gradient});
  std::sort(given.begin(), given.end());
  std::sort(found.begin(), found.end());
  CHECK(found == given);
}

template <class Graph>
std::string refusal(const Graph& mine) {
  return test::message_of([&] { return convert(mine); });
}

}  // namespace

TEST_CASE("random graphs of several kinds become planning graphs, with the way back to their vertices") {
  const std::uint64_t seed = test::first_seed();
  INFO("seed " << seed);
  test::random_source random(seed);
  for (int round = 0; round < 50; ++round) {
    INFO("round " << round);
    const int size = random.integer(1, 12);
    std::vector<std::size_t> order;  // of the edges; vertex numbers are arbitrary
    for (int v = 0; v < size; ++v) order.push_back(static_cast<std::size_t>(v));
    random.shuffle(order);
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<tensor> tensors;
    for (std::size_t a = 0; a < order.size(); ++a) {
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        if (!random.chance(0.3)) continue;
        pairs.emplace_back(order[a], order[b]);
        tensors.push_back({1.0 * random.integer(0, 9), 1.0 * random.integer(0, 9)});
      }
    }
    list_of<boost::vecS> numbered;
    list_of<boost::listS> linked;  // vertices are pointers
    std::vector<boost::graph_traits<list_of<boost::listS>>::vertex_descriptor> pointer;
    rows_of rows(boost::edges_are_unsorted_multi_pass, pairs.begin(), pairs.end(), tensors.begin(), order.size());
    for (int v = 0; v < size; ++v) {
      const operation o{"op" + std::to_string(v), 1.0 * random.integer(1, 9)};
      add_vertex(o, numbered);
      pointer.push_back(add_vertex(o, linked));
      rows[static_cast<std::size_t>(v)] = o;
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      add_edge(pairs[i].first, pairs[i].second, tensors[i], numbered);
      add_edge(pointer[pairs[i].first], pointer[pairs[i].second], tensors[i], linked);
    }
    check_conversion(numbered);
    check_conversion(linked);
    check_conversion(rows);
    CHECK(convert(numbered).graph == convert(linked).graph);
    CHECK(convert(numbered).graph == convert(rows).graph);
  }
}

TEST_CASE("a planning graph is a graph of Boost's, so it is made of itself") {
  const planning_graph g = zoo::model("resnet50");
  const auto [same, layer_of] = planning_graph_from(
      g, [&](layer_id l) { return spec_of(g, g[l]); }, [](const layer_edge& e) { return tensor_spec(e.forward, e.gradient); }, g.name(),
      g.facts());
  CHECK(same == g);
  for (const layer& l : g.layers()) CHECK(layer_of[l.id.index()] == l.id);
}

TEST_CASE("an edge without a word on gradients has them as large as its tensor") {
  list_of<boost::vecS> mine;
  add_edge(add_vertex({"a", 1}, mine), add_vertex({"b", 1}, mine), {}, mine);
  const auto named = [&](auto v) { return layer_spec{.name = mine[v].name, .forward_flops = 1_FLOP}; };
  CHECK(planning_graph_from(mine, named, [](auto) { return 7_B; }).graph.edges()[0] == layer_edge{layer_id(0), layer_id(1), 7_B, 7_B});
  CHECK(planning_graph_from(mine, named, [](auto) { return tensor_spec(7_B, 0_B); }).graph.edges()[0].gradient == 0_B);
}

TEST_CASE("what makes no model is refused by the builder, which names the layers") {
  list_of<boost::vecS> mine;
  CHECK(refusal(mine) == "model \"mine\": a model has at least one layer");
  const auto a = add_vertex({"a", 1}, mine), b = add_vertex({"b", 1}, mine);
  add_edge(a, b, {1, 1}, mine);
  CHECK(refusal(mine) == "no error");
  add_edge(b, a, {1, 1}, mine);
  CHECK(refusal(mine).find("is on a cycle") != std::string::npos);
  list_of<boost::vecS> twice;
  add_vertex({"a", 1}, twice);
  add_vertex({"b", 1}, twice);
  add_edge(a, b, {1, 1}, twice);
  add_edge(a, b, {2, 2}, twice);
  CHECK(refusal(twice) == "model \"mine\": edge \"a\" -> \"b\" appears twice");
  list_of<boost::vecS> namesakes;
  add_vertex({"a", 1}, namesakes);
  add_vertex({"a", 1}, namesakes);
  CHECK(refusal(namesakes) == "model \"mine\": layer \"a\" appears twice");
}

}  // namespace test_layer_dag
