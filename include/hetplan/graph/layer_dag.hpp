// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Planning graphs made from Boost graphs, and the concept of such models.

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/bgl.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

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
/// Layers keep the order of vertices(mine) if that is topological. The last three arguments are the builder's.
///
/// Complexity  O((V + E) log(V + E)); vertices are compared with std::less.
/// Throws      invalid_input: anything that the builder refuses, such as a cycle, parallel edges or equal names.
template <class Graph, class LayerOf, class TensorOf>
[[nodiscard]] auto planning_graph_from(const Graph& mine, const LayerOf& layer_of, const TensorOf& tensor_of, std::string name = "graph",
                                       double bytes_per_parameter = 4, int tokens_per_sample = 1) {
  static_assert(check_layer_dag<Graph, LayerOf, TensorOf>());
  if constexpr (layer_dag<Graph, LayerOf, TensorOf>) {
    using vertex = typename boost::graph_traits<Graph>::vertex_descriptor;
    planning_graph_builder builder(std::move(name), bytes_per_parameter, tokens_per_sample);
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
