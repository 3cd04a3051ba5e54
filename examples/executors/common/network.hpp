// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in networks, and the planning graph that describes one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>

#include "layers.hpp"

namespace executors {

/// A layer: what it computes, the layers that it reads (all before it), and the group whose tensor it shares.
struct network_layer {
  std::string name;
  operation work;
  std::vector<std::size_t> inputs = {};
  std::string group = {};

  [[nodiscard]] long width() const;
  [[nodiscard]] long parameters() const;
};

/// Layers in topological order. Those that nobody reads are losses: the network's loss is their mean over the global batch.
struct neural_network {
  std::string name;
  std::vector<network_layer> layers;

  /// The layer that stands for a layer's parameters: the first of its group, or itself.
  [[nodiscard]] std::size_t tensor_of(std::size_t layer) const;
  /// First parameters of a tensor, by its seed: uniform, so that a layer keeps the size of what runs through it.
  [[nodiscard]] Eigen::VectorXd first_parameters(std::size_t tensor, std::uint64_t seed) const;
};

/// `depth` dense layers between a first and a last one, all `width` wide.
[[nodiscard]] neural_network mlp(long width, int depth);

/// A language model: blocks of attention and feed-forward between an embedding and its transpose (one tensor, "table").
[[nodiscard]] neural_network transformer(long tokens, long model, long vocabulary, int blocks);

/// Two towers of dense layers, each with data of its own, that are joined: a wide one, and a narrow one half as deep.
[[nodiscard]] neural_network towers(long width, int depth);

/// A built-in network by its name. Throws invalid_input for another name.
[[nodiscard]] neural_network find_network(std::string_view name);

/// The planning graph of a network: bytes are those of 8-byte numbers, as they are really held and sent.
///
/// @param weight_parts  by layer: the part of its backward's FLOP that counts as the gradients of its weights; none: half, where it has
/// any.
[[nodiscard]] hetplan::planning_graph describe(const neural_network& n,
                                               const std::vector<std::vector<hetplan::layer_profile>>& profiles = {},
                                               const std::vector<double>& weight_parts = {});

}  // namespace executors
