// SPDX-License-Identifier: BSL-1.0
// A graph that lives in Boost.Graph becomes a planning graph, and Boost's algorithms run on that one too.
#include <cstdio>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/property_map/function_property_map.hpp>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/hetplan.hpp>

using namespace hetplan;

struct operation {
  const char* name;
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
  const auto stem = add_vertex(operation{"stem", 4}, mine), left = add_vertex(operation{"left", 20}, mine);
  const auto right = add_vertex(operation{"right", 12}, mine), join = add_vertex(operation{"join", 2}, mine);
  add_edge(stem, left, tensor{2}, mine);
  add_edge(stem, right, tensor{2}, mine);
  add_edge(left, join, tensor{1}, mine);
  add_edge(right, join, tensor{1}, mine);

  // [convert]
  planning_graph_builder builder("from boost");
  for (const auto v : boost::make_iterator_range(vertices(mine))) {
    builder.add_layer({.name = mine[v].name, .forward_flops = mine[v].gflop * 1_GFLOP});
  }
  for (const auto e : boost::make_iterator_range(edges(mine))) {
    builder.add_edge(layer_id(source(e, mine)), layer_id(target(e, mine)), mine[e].megabytes * 1_MB);
  }
  const planning_graph model = std::move(builder).build();
  // [convert]

  // The other way round: the longest path in FLOP, by Boost, on the planning graph.
  const csr_graph g = boost_graph(model);
  const auto weight = boost::make_function_property_map<boost::graph_traits<csr_graph>::edge_descriptor>(
      [&](const auto& e) { return -model[layer_id(boost::target(e, g))].forward_flops.value(); });
  std::vector<double> distance(model.size());
  boost::dag_shortest_paths(
      g, model.find("stem").index(),
      boost::weight_map(weight).distance_map(boost::make_iterator_property_map(distance.begin(), get(boost::vertex_index, g))));
  const double longest = model[model.find("stem")].forward_flops.value() - distance[model.find("join").index()];
  std::printf("%zu layers, %zu edges, longest path %.0f GFLOP\n", model.size(), model.edges().size(), longest / 1e9);
}
