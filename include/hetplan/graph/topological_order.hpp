// SPDX-License-Identifier: BSL-1.0
#pragma once
/// One stable topological order for layers and for stages.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// Nodes 0 ... n-1 so that every edge goes forward, always the smallest node that is ready: an order that
/// already is topological stays as it is. Nodes on or behind a cycle are missing from the result.
///
/// Complexity  O(n log n + edges).
/// Why ours    boost::topological_sort is not stable in this sense, and its header alone costs a fifth of the
///             time to include this library.
[[nodiscard]] std::vector<std::size_t> topological_order(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges);

/// An edge of a cycle, given a topological order that came out short.
[[nodiscard]] std::pair<std::size_t, std::size_t> edge_on_cycle(std::size_t n, std::span<const std::pair<std::size_t, std::size_t>> edges,
                                                                std::span<const std::size_t> order);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/topological_order.ipp>
#endif
