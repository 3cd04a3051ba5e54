// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planning graphs as Boost graphs: algorithms of the Boost Graph Library run on the model itself.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/transform_iterator.hpp>
#include <boost/property_map/function_property_map.hpp>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::detail {

struct id_of_layer {
  const layer_id& operator()(const layer& l) const { return l.id; }
};
struct target_of_edge {
  const layer_id& operator()(const layer_edge& e) const { return e.to; }
};
struct edge_of_number {
  const layer_edge* edges = nullptr;
  const layer_edge& operator()(std::uint32_t number) const { return edges[number]; }
};
struct number_of_layer {
  std::size_t operator()(layer_id l) const { return l.index(); }
};
struct number_of_edge {
  const planning_graph* graph = nullptr;
  std::size_t operator()(const layer_edge& e) const {
    const std::span<const layer_edge> leaving = graph->out_edges(e.from);
    const auto at = std::lower_bound(leaving.begin(), leaving.end(), e.to, [](const layer_edge& x, layer_id to) { return x.to < to; });
    return static_cast<std::size_t>(&*at - graph->edges().data());
  }
};

template <class T>
[[nodiscard]] std::pair<const T*, const T*> bgl_range(std::span<const T> all) {
  return {all.data(), all.data() + all.size()};
}
template <class T, class F>
[[nodiscard]] auto bgl_range(std::span<const T> all, F f) {
  using iterator = boost::transform_iterator<F, const T*>;
  return std::pair(iterator(all.data(), f), iterator(all.data() + all.size(), f));
}

}  // namespace hetplan::detail

namespace boost {

/// A planning graph as a Boost graph. Vertices are layer ids and edges are `layer_edge`s, so results need no translation; a weight is
/// [](const layer_edge& e) { return e.forward.value(); }. `vertex_index` is layer_id::index(), `edge_index` the subscript of edges().
///
/// Models      VertexListGraph, EdgeListGraph, AdjacencyGraph, BidirectionalGraph; readable vertex_index and edge_index.
/// Complexity  O(1) each, nothing is copied; edge_index O(log out-degree of the edge's source).
template <>
struct graph_traits<hetplan::planning_graph> {
  struct traversal_category : bidirectional_graph_tag, adjacency_graph_tag, vertex_list_graph_tag, edge_list_graph_tag {};
  using directed_category = bidirectional_tag;
  using edge_parallel_category = disallow_parallel_edge_tag;

  using vertex_descriptor = hetplan::layer_id;
  using edge_descriptor = hetplan::layer_edge;
  using vertex_iterator = transform_iterator<hetplan::detail::id_of_layer, const hetplan::layer*>;
  using edge_iterator = const hetplan::layer_edge*;
  using out_edge_iterator = const hetplan::layer_edge*;
  using in_edge_iterator = transform_iterator<hetplan::detail::edge_of_number, const std::uint32_t*>;
  using adjacency_iterator = transform_iterator<hetplan::detail::target_of_edge, const hetplan::layer_edge*>;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;

  static vertex_descriptor null_vertex() { return {}; }
};
template <>
struct property_map<hetplan::planning_graph, vertex_index_t> {
  using type = function_property_map<hetplan::detail::number_of_layer, hetplan::layer_id>;
  using const_type = type;
};
template <>
struct property_map<hetplan::planning_graph, edge_index_t> {
  using type = function_property_map<hetplan::detail::number_of_edge, hetplan::layer_edge>;
  using const_type = type;
};

}  // namespace boost

namespace hetplan {

[[nodiscard]] inline std::size_t num_vertices(const planning_graph& g) { return g.size(); }
[[nodiscard]] inline auto vertices(const planning_graph& g) { return detail::bgl_range(g.layers(), detail::id_of_layer{}); }

[[nodiscard]] inline std::size_t num_edges(const planning_graph& g) { return g.edges().size(); }
[[nodiscard]] inline auto edges(const planning_graph& g) { return detail::bgl_range(g.edges()); }
[[nodiscard]] inline layer_id source(const layer_edge& e, const planning_graph&) { return e.from; }
[[nodiscard]] inline layer_id target(const layer_edge& e, const planning_graph&) { return e.to; }

[[nodiscard]] inline std::size_t out_degree(layer_id l, const planning_graph& g) { return g.out_edges(l).size(); }
[[nodiscard]] inline auto out_edges(layer_id l, const planning_graph& g) { return detail::bgl_range(g.out_edges(l)); }
[[nodiscard]] inline auto adjacent_vertices(layer_id l, const planning_graph& g) {
  return detail::bgl_range(g.out_edges(l), detail::target_of_edge{});
}

[[nodiscard]] inline std::size_t in_degree(layer_id l, const planning_graph& g) { return g.in_edges(l).size(); }
[[nodiscard]] inline auto in_edges(layer_id l, const planning_graph& g) {
  return detail::bgl_range(g.in_edges(l), detail::edge_of_number{g.edges().data()});
}
[[nodiscard]] inline std::size_t degree(layer_id l, const planning_graph& g) { return in_degree(l, g) + out_degree(l, g); }

[[nodiscard]] inline auto get(boost::vertex_index_t, const planning_graph&) {
  return boost::property_map<planning_graph, boost::vertex_index_t>::type();
}
[[nodiscard]] inline std::size_t get(boost::vertex_index_t, const planning_graph&, layer_id l) { return l.index(); }
[[nodiscard]] inline auto get(boost::edge_index_t, const planning_graph& g) {
  return boost::property_map<planning_graph, boost::edge_index_t>::type({&g});
}
[[nodiscard]] inline std::size_t get(boost::edge_index_t tag, const planning_graph& g, const layer_edge& e) { return get(tag, g)[e]; }

}  // namespace hetplan
