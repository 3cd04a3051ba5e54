// SPDX-License-Identifier: BSL-1.0
// expect: layer_dag needs: a directed graph of Boost.Graph's with vertices(g), edges(g), source(e, g) and target(e, g)
#include <boost/graph/adjacency_list.hpp>

#include <hetplan/graph/bgl.hpp>

using namespace hetplan;

using my_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
auto make(const my_graph& mine) {
  return planning_graph_from(
      mine, [](auto v) { return layer_spec{.name = std::to_string(v), .forward_flops = 1_GFLOP}; }, [](auto) { return 1_MB; });
}
