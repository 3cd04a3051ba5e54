// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What takes no time at either end of a graph, as the virtual sources and sinks of samples do: about its order there is no choice.

#include <cstddef>
#include <vector>

#include <hetplan/place/placement_columns.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Nodes that take no time wherever they are and wait only for such nodes: they may come first on their machines. And those that only
/// such nodes wait for: they may come last. Among themselves they go along paths.
///
/// Complexity  O(operators x devices + edges x devices^2).   Source  ours: moving them there delays nothing.
class instant_nodes {
 public:
  explicit instant_nodes(const placement_columns& c);

  [[nodiscard]] bool any_of(std::size_t a, std::size_t b) const { return side_[a] != 0 || side_[b] != 0; }
  /// Of two nodes of which one at least takes no time.
  [[nodiscard]] node_order order_of(std::size_t a, std::size_t b) const;

 private:
  std::vector<int> side_;          ///< by node; -1: comes first; 1: last
  std::vector<std::size_t> rank_;  ///< by node: grows along paths
};

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/instant_nodes.ipp>
#endif
