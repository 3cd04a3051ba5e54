// SPDX-License-Identifier: BSL-1.0
// expect: layer_dag needs: hetplan::tensor_spec tensor_of(edge) const, or hetplan::bytes where gradients are as large
#include <boost/graph/adjacency_list.hpp>

#include <hetplan/graph/bgl.hpp>

using namespace hetplan;

using my_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;
auto make(const my_graph& mine) {
  return planning_graph_from(
      mine, [](auto v) { return layer_spec{.name = std::to_string(v), .forward_flops = 1_GFLOP}; }, [](auto) { return 1e6; });
}
