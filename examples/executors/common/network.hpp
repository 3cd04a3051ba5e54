// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in networks and their planning graphs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>

#include "layers.hpp"

namespace executors {

/// A layer: its operation, the layers that it reads (all before it), and the group whose tensor it shares.
struct network_layer {
  std::string name;
  operation work;
  std::vector<std::size_t> inputs = {};
  std::string group = {};

  [[nodiscard]] long width() const;
  [[nodiscard]] long parameters() const;
};

/// Layers in topological order. Layers without readers are losses; the network's loss is their mean over the global batch.
struct neural_network {
  std::string name;
  std::vector<network_layer> layers;

  /// Returns the layer that stands for a layer's parameters: the first of its group, or itself.
  [[nodiscard]] std::size_t tensor_of(std::size_t layer) const;
  /// Returns the initial parameters of a tensor by its seed: uniform, at a scale that keeps the size of a layer's values.
  [[nodiscard]] Eigen::VectorXd first_parameters(std::size_t tensor, std::uint64_t seed) const;
};

/// Returns `depth` dense layers between a first and a last one, all `width` wide.
[[nodiscard]] neural_network mlp(long width, int depth);

/// Returns a language model: blocks of attention and feed-forward between an embedding and its transpose (one tensor, "table").
[[nodiscard]] neural_network transformer(long tokens, long model, long vocabulary, int blocks);

/// Returns two joined towers of dense layers with their own data: a wide one, and a narrow one of half the depth.
[[nodiscard]] neural_network towers(long width, int depth);

/// Returns a built-in network by name. Throws invalid_input for another name.
[[nodiscard]] neural_network find_network(std::string_view name);

/// Returns the planning graph of a network; bytes are those of 8-byte numbers, as held and sent.
///
/// @param weight_parts  [layer]: part of the backward's FLOP that counts as weight gradients; empty: half for layers with weights.
[[nodiscard]] hetplan::planning_graph describe(const neural_network& n,
                                               const std::vector<std::vector<hetplan::layer_profile>>& profiles = {},
                                               const std::vector<double>& weight_parts = {});

}  // namespace executors
