// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Conversion of a CEP graph to a graph for Boost.Graph's algorithms.

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/schedule/cep_graph.hpp>

namespace hetplan::schedule {

/// Returns the CEP graph as a Boost graph: vertex n is node n, and a device's order is a path.
/// Complexity  O(nodes + dependencies); every call builds a new graph.
/// Source      the graph: Dora, section 4.2 (see cep_graph).
[[nodiscard]] boost::compressed_sparse_row_graph<boost::directedS> boost_graph(const cep_graph& cep);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/bgl.ipp>
#endif
