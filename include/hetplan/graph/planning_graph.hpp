// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What runs: an immutable DAG of layers, numbered topologically.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <hetplan/graph/layer.hpp>

namespace hetplan {

/// A tensor on its way from one layer to another, per sample.
struct layer_edge {
  layer_id from;
  layer_id to;
  bytes forward;   ///< activation bytes, u to v
  bytes gradient;  ///< gradient bytes, v to u; 0 = no backward transfer

  friend bool operator==(const layer_edge&, const layer_edge&) = default;
};

/// The planning graph G_M = (V, E). Made by `planning_graph_builder`, which does all validation.
///
/// Layers are numbered so that every edge goes from a smaller to a larger id (the builder keeps the
/// caller's order where it already is topological). With `graph/bgl.hpp` it is a graph of Boost's.
class planning_graph {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return layers_.size(); }
  [[nodiscard]] std::span<const layer> layers() const { return layers_; }
  [[nodiscard]] const layer& operator[](layer_id l) const { return layers_[l.index()]; }

  /// All edges, ordered by (from, to).
  [[nodiscard]] std::span<const layer_edge> edges() const { return edges_; }
  /// The edges that leave a layer, ordered by target.
  [[nodiscard]] std::span<const layer_edge> out_edges(layer_id l) const;
  /// Indices into edges() of the edges that enter a layer, ordered by source.
  [[nodiscard]] std::span<const std::uint32_t> in_edges(layer_id l) const;

  /// Names of the weight groups; layer::weight_group indexes it.
  [[nodiscard]] std::span<const std::string> weight_groups() const { return weight_groups_; }

  /// Throws invalid_input if no layer has that name.
  [[nodiscard]] layer_id find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return by_name_.contains(std::string(name)); }

  [[nodiscard]] double bytes_per_parameter() const { return bytes_per_parameter_; }
  [[nodiscard]] int tokens_per_sample() const { return tokens_per_sample_; }

  /// Number of parameters; a tensor shared by a weight group counts once.
  [[nodiscard]] double parameters() const;
  /// Forward FLOP of one sample, all layers.
  [[nodiscard]] flops forward_flops() const;

  /// Equal contents; the derived indices follow from them.
  friend bool operator==(const planning_graph& a, const planning_graph& b) {
    return a.name_ == b.name_ && a.layers_ == b.layers_ && a.edges_ == b.edges_ && a.weight_groups_ == b.weight_groups_ &&
           a.bytes_per_parameter_ == b.bytes_per_parameter_ && a.tokens_per_sample_ == b.tokens_per_sample_;
  }

 private:
  friend class planning_graph_builder;
  planning_graph() = default;

  std::string name_;
  double bytes_per_parameter_ = 4;
  int tokens_per_sample_ = 1;
  std::vector<layer> layers_;
  std::vector<layer_edge> edges_;
  std::vector<std::string> weight_groups_;
  std::vector<std::size_t> first_out_, first_in_;
  std::vector<std::uint32_t> in_;
  std::unordered_map<std::string, layer_id> by_name_;
};

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/planning_graph.ipp>
#endif
