// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A communication-expanded pipeline graph for Boost.Graph's algorithms.

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/schedule/cep_graph.hpp>

namespace hetplan::schedule {

/// Nodes and edges: vertex n is node n; a device's order is a path.
///
/// Complexity  O(nodes + dependencies): made anew at every call.
/// Source      the graph: Dora, section 4.2 (see cep_graph).
[[nodiscard]] boost::compressed_sparse_row_graph<boost::directedS> boost_graph(const cep_graph& cep);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/bgl.ipp>
#endif
