// SPDX-License-Identifier: BSL-1.0
// A graph that lives in Boost.Graph becomes a planning graph in one call, and Boost's algorithms run on that one too.
#include <cstdio>
#include <string>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/hetplan.hpp>

using namespace hetplan;

struct operation {
  std::string name;
  double gflop;
};
struct tensor {
  double megabytes;
};
using own_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, operation, tensor>;

int main() {
  //        +--> left ---+
  //  stem -+            +--> join
  //        +--> right --+
  own_graph mine;
  const auto join = add_vertex({"join", 2}, mine), left = add_vertex({"left", 20}, mine);
  const auto right = add_vertex({"right", 12}, mine), stem = add_vertex({"stem", 4}, mine);
  add_edge(stem, left, {2}, mine);
  add_edge(stem, right, {2}, mine);
  add_edge(left, join, {1}, mine);
  add_edge(right, join, {1}, mine);

  // [layer_dag]
  const auto [model, vertex_of] = planning_graph_from(
      mine, [&](auto v) { return layer_spec{.name = mine[v].name, .forward_flops = mine[v].gflop * 1_GFLOP}; },
      [&](auto e) { return mine[e].megabytes * 1_MB; });
  // [layer_dag]
  for (const layer& l : model.layers()) std::printf("layer %d is vertex %zu, %s\n", l.id.value, vertex_of[l.id.index()], l.name.c_str());

  // The longest path in FLOP, by Boost, on the planning graph: its edges are `layer_edge`s, its vertices layer ids.
  const auto work = [&](layer_id l) { return model[l].forward_flops.value(); };
  const auto weight = boost::make_function_property_map<layer_edge>([&](const layer_edge& e) { return -work(e.to); });
  std::vector<double> distance(model.size());
  const auto by_layer = boost::make_iterator_property_map(distance.begin(), get(boost::vertex_index, model));
  boost::dag_shortest_paths(model, model.find("stem"), boost::weight_map(weight).distance_map(by_layer));
  const double longest = work(model.find("stem")) - distance[model.find("join").index()];
  std::printf("%zu layers, %zu edges, longest path %.0f GFLOP\n", model.size(), model.edges().size(), longest / 1e9);
}
