// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Several topological orders of one DAG, most of them depth first: what a graph is linearised to.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan {

/// The stable order, and depth-first orders from the sources and from the sinks, each with the smallest and with the largest node
/// first; no order twice.
///
/// @param edges     without cycles.
/// Complexity       O((n + edges) log n).
/// Determinism      always the same orders in the same sequence.
[[nodiscard]] std::vector<std::vector<std::size_t>> linear_orders(std::size_t n,
                                                                  std::span<const std::pair<std::size_t, std::size_t>> edges);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/linear_orders.ipp>
#endif
