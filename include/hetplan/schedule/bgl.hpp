// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A communication-expanded pipeline graph for Boost.Graph's algorithms.

#include <cstddef>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/schedule/cep_graph.hpp>

namespace HETPLAN_NAMESPACE::schedule {

/// Nodes and edges: vertex n is node n; a device's order is a path.
///
/// Complexity  O(nodes + dependencies): made anew at every call.
[[nodiscard]] inline boost::compressed_sparse_row_graph<boost::directedS> boost_graph(const cep_graph& cep) {
  const tasks::task_graph& g = cep.tasks();
  std::vector<std::pair<tasks::node_id, tasks::node_id>> edges;
  for (tasks::node_id n = 0; n < g.size(); ++n) {
    for (const tasks::node_id m : g.successors_of(n)) edges.emplace_back(n, m);
  }
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) edges.emplace_back(order[i - 1], order[i]);
  }
  return {boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), g.size()};
}

}  // namespace HETPLAN_NAMESPACE::schedule
