// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planning graphs as Boost graphs: algorithms of the Boost Graph Library run on the model itself.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

// Planning graphs made from Boost graphs, and the concept of such models.

/// Bytes that an edge carries, per sample. A function that returns plain `bytes` means gradients of the same size.
struct tensor_spec {
  bytes forward;
  std::optional<bytes> gradient;  ///< empty: as forward; 0: no backward transfer

  tensor_spec(bytes there, std::optional<bytes> back = {}) : forward(there), gradient(back) {}
};

template <class Graph>
concept lists_directed_edges =
    requires(const Graph& g) {
      vertices(g);
      edges(g);
    } && std::convertible_to<typename boost::graph_traits<Graph>::directed_category, boost::directed_tag> &&
    requires(const Graph& g, const typename boost::graph_traits<Graph>::edge_descriptor& e) {
      { *vertices(g).first } -> std::convertible_to<typename boost::graph_traits<Graph>::vertex_descriptor>;
      { *edges(g).first } -> std::convertible_to<typename boost::graph_traits<Graph>::edge_descriptor>;
      { source(e, g) } -> std::convertible_to<typename boost::graph_traits<Graph>::vertex_descriptor>;
      { target(e, g) } -> std::convertible_to<typename boost::graph_traits<Graph>::vertex_descriptor>;
    };
template <class F, class Graph>
concept tells_layers = requires(const F& layer_of, const typename boost::graph_traits<Graph>::vertex_descriptor& v) {
  { layer_of(v) } -> std::same_as<layer_spec>;  // called once per vertex
};
template <class F, class Graph>
concept tells_tensors = requires(const F& tensor_of, const typename boost::graph_traits<Graph>::edge_descriptor& e) {
  { tensor_of(e) } -> std::convertible_to<tensor_spec>;  // called once per edge
};

/// A model in a Boost graph, or in any graph that lists its vertices and directed edges (VertexListGraph and EdgeListGraph), with
/// two functions: the layer of a vertex, and the tensor of an edge. `planning_graph_from` makes a planning graph from it.
///
/// * Layers keep the order of vertices(g) if that is topological.
/// * `tensor_spec(forward, gradient)` gives the bytes of both directions; plain `bytes` means gradients of the same size.
/// * A cycle, parallel edges, equal names and anything else that the builder refuses throw `invalid_input`.
template <class Graph, class LayerOf, class TensorOf>
concept layer_dag = lists_directed_edges<Graph> && tells_layers<LayerOf, Graph> && tells_tensors<TensorOf, Graph>;

template <class Graph, class LayerOf, class TensorOf>
consteval bool check_layer_dag() {
  static_assert(lists_directed_edges<Graph>,
                "layer_dag needs: a directed graph of Boost.Graph's with vertices(g), edges(g), source(e, g) and target(e, g)");
  if constexpr (lists_directed_edges<Graph>) {
    static_assert(tells_layers<LayerOf, Graph>, "layer_dag needs: hetplan::layer_spec layer_of(vertex) const");
    static_assert(tells_tensors<TensorOf, Graph>,
                  "layer_dag needs: hetplan::tensor_spec tensor_of(edge) const, or hetplan::bytes where gradients are as large");
  }
  return layer_dag<Graph, LayerOf, TensorOf>;
}

/// Planning graph and the vertices that its layers come from.
template <class Vertex>
struct graph_with_origin {
  planning_graph graph;
  std::vector<Vertex> vertex_of;  ///< by layer_id::index()
};

/// Returns the planning graph of a user's graph:
///
///     const auto [model, vertex_of] = planning_graph_from(
///         mine, [&](auto v) { return layer_spec{.name = mine[v].name, .forward_flops = mine[v].work}; },
///         [&](auto e) { return mine[e].size; });
///
/// Layers keep the order of vertices(mine) if that is topological. The last two arguments are the builder's.
///
/// Complexity  O((V + E) log(V + E)); vertices are compared with std::less.
/// Throws      invalid_input: anything that the builder refuses, such as a cycle, parallel edges or equal names.
template <class Graph, class LayerOf, class TensorOf>
[[nodiscard]] auto planning_graph_from(const Graph& mine, const LayerOf& layer_of, const TensorOf& tensor_of, std::string name = "graph",
                                       model_facts facts = {}) {
  static_assert(check_layer_dag<Graph, LayerOf, TensorOf>());
  if constexpr (layer_dag<Graph, LayerOf, TensorOf>) {
    using vertex = typename boost::graph_traits<Graph>::vertex_descriptor;
    planning_graph_builder builder(std::move(name), std::move(facts));
    std::map<vertex, std::string> name_of;
    for (auto [v, last] = vertices(mine); v != last; ++v) {
      layer_spec spec = layer_of(*v);
      name_of.emplace(*v, spec.name);
      builder.add_layer(std::move(spec));
    }
    for (auto [e, last] = edges(mine); e != last; ++e) {
      const tensor_spec t = tensor_of(*e);
      builder.add_edge(name_of.at(source(*e, mine)), name_of.at(target(*e, mine)), t.forward, t.gradient);
    }
    graph_with_origin<vertex> all{std::move(builder).build(), {}};
    all.vertex_of.resize(all.graph.size());
    for (const auto& [v, layer] : name_of) all.vertex_of[all.graph.find(layer).index()] = v;
    return all;
  }
}

}  // namespace hetplan
