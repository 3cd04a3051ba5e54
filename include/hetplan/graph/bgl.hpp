// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A planning graph for Boost.Graph's algorithms.

#include <cstddef>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/graph/planning_graph.hpp>

namespace HETPLAN_NAMESPACE {

using csr_graph = boost::compressed_sparse_row_graph<boost::bidirectionalS>;

/// The same graph in Boost's form: vertices are the layer ids, the edge index numbers `edges()`.
///
/// Complexity  O(V + E): made anew at every call.
[[nodiscard]] inline csr_graph boost_graph(const planning_graph& g) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  pairs.reserve(g.edges().size());
  for (const layer_edge& e : g.edges()) pairs.emplace_back(e.from.index(), e.to.index());
  return {boost::edges_are_unsorted_multi_pass, pairs.begin(), pairs.end(), g.size()};
}

}  // namespace HETPLAN_NAMESPACE
