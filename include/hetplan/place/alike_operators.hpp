// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Operators and edges of a placement table that nothing tells apart.

#include <cstddef>
#include <vector>

#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

/// An equitable partition: every operator of a class has as many edges of each class of edges as any other.
struct alike_operators {
  struct edge_class {
    std::size_t from = 0, to = 0;  ///< classes of operators
    std::size_t like = 0;          ///< one of its edges
    std::size_t size = 0;
  };
  std::vector<std::size_t> class_of = {};  ///< by operator, numbered by first occurrence
  std::vector<std::size_t> like = {};      ///< by class: its first operator
  std::vector<std::size_t> size = {};      ///< by class
  std::vector<edge_class> edges = {};
};

/// The coarsest one that keeps times, bytes and sets of devices.
///
/// @param sets  of devices, by operator.
/// Complexity   O(rounds x (operators + edges) log), as many rounds as the longest way on which a difference spreads.
/// Source       colour refinement (Weisfeiler and Leman, 1968).
[[nodiscard]] alike_operators find_alike_operators(const placement_table& t, const std::vector<device_set>& sets);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/alike_operators.ipp>
#endif
