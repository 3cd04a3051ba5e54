// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What runs: an immutable DAG of layers, numbered topologically, on a Boost.Graph.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <boost/graph/compressed_sparse_row_graph.hpp>

#include <hetplan/core/error.hpp>
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
/// caller's order where it already is topological). `boost_graph()` is a bidirectional compressed
/// sparse row graph whose vertices are the layer ids and whose edge index numbers `edges()`.
class planning_graph {
 public:
  using csr_graph = boost::compressed_sparse_row_graph<boost::bidirectionalS>;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return layers_.size(); }
  [[nodiscard]] std::span<const layer> layers() const { return layers_; }
  [[nodiscard]] const layer& operator[](layer_id l) const { return layers_[l.index()]; }

  /// All edges, ordered by (from, to).
  [[nodiscard]] std::span<const layer_edge> edges() const { return edges_; }
  /// The edges that leave a layer, ordered by target.
  [[nodiscard]] std::span<const layer_edge> out_edges(layer_id l) const {
    return std::span(edges_).subspan(first_out_[l.index()], first_out_[l.index() + 1] - first_out_[l.index()]);
  }
  /// Indices into edges() of the edges that enter a layer, ordered by source.
  [[nodiscard]] std::span<const std::uint32_t> in_edges(layer_id l) const {
    return std::span(in_).subspan(first_in_[l.index()], first_in_[l.index() + 1] - first_in_[l.index()]);
  }

  /// Names of the weight groups; layer::weight_group indexes it.
  [[nodiscard]] std::span<const std::string> weight_groups() const { return groups_; }

  /// Throws invalid_input if no layer has that name.
  [[nodiscard]] layer_id find(std::string_view name) const {
    const auto it = by_name_.find(std::string(name));
    if (it == by_name_.end()) throw invalid_input("model \"" + name_ + "\" has no layer \"" + std::string(name) + "\"");
    return it->second;
  }
  [[nodiscard]] bool contains(std::string_view name) const { return by_name_.contains(std::string(name)); }

  [[nodiscard]] double bytes_per_parameter() const { return bytes_per_parameter_; }
  [[nodiscard]] int tokens_per_sample() const { return tokens_per_sample_; }

  /// Number of parameters; a tensor shared by a weight group counts once.
  [[nodiscard]] double parameters() const {
    std::vector<bool> seen(groups_.size());
    bytes total;
    for (const layer& l : layers_) {
      if (l.weight_group >= 0) {
        if (seen[static_cast<std::size_t>(l.weight_group)]) continue;
        seen[static_cast<std::size_t>(l.weight_group)] = true;
      }
      total += l.weight;
    }
    return total.value() / bytes_per_parameter_;
  }
  /// Forward FLOP of one sample, all layers.
  [[nodiscard]] flops forward_flops() const {
    flops total;
    for (const layer& l : layers_) total += l.forward_flops;
    return total;
  }

  /// The same graph for Boost.Graph's algorithms.
  [[nodiscard]] const csr_graph& boost_graph() const { return graph_; }

  /// Equal contents; the derived indices follow from them.
  friend bool operator==(const planning_graph& a, const planning_graph& b) {
    return a.name_ == b.name_ && a.layers_ == b.layers_ && a.edges_ == b.edges_ && a.groups_ == b.groups_ &&
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
  std::vector<std::string> groups_;
  std::vector<std::size_t> first_out_, first_in_;
  std::vector<std::uint32_t> in_;
  std::unordered_map<std::string, layer_id> by_name_;
  csr_graph graph_;
};

}  // namespace hetplan
