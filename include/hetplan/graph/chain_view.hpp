// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A model as a planner that only knows chains sees and runs it.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/planning_graph_builder.hpp>

namespace hetplan {

/// The same layers in the same numbering in series: tensors are handed on from layer to layer.
///
/// The only edges are i -> i+1. Each carries everything that crosses that boundary of the numbering: every
/// tensor once, with the most bytes that any reader behind the boundary takes, gradients alike; 0 bytes
/// where nothing crosses. Layers keep their attributes, resolved defaults included, except
/// `largest_output`, which follows from the edges.
///
/// Complexity       O(layers + sum over layers of the distance to their last reader).
/// Determinism      a boundary adds up its tensors in the order of their layers.
/// Source           the model of planners that know chains only: Asteroid, EdgeShard.
[[nodiscard]] inline planning_graph chain_view(const planning_graph& model) {
  std::vector<bytes> forward(model.size()), gradient(model.size());  // of the edge that leaves layer i
  for (const layer& l : model.layers()) {
    const auto edges = model.out_edges(l.id);  // by target: going back, readers only join
    bytes tensor, back;
    for (std::size_t e = edges.size(); e-- > 0;) {
      tensor = std::max(tensor, edges[e].forward);
      back = std::max(back, edges[e].gradient);
      const std::size_t nearest = e == 0 ? l.id.index() : edges[e - 1].to.index();
      for (std::size_t i = nearest; i < edges[e].to.index(); ++i) {
        forward[i] += tensor;
        gradient[i] += back;
      }
    }
  }

  planning_graph_builder chain(model.name(), model.bytes_per_parameter(), model.tokens_per_sample());
  for (const layer& l : model.layers()) {
    chain.add_layer({.name = l.name,
                     .kind = l.kind,
                     .forward_flops = l.has_flops ? std::optional(l.forward_flops) : std::nullopt,
                     .backward_input_flops = l.backward_input_flops,
                     .backward_weight_flops = l.backward_weight_flops,
                     .weight = l.weight,
                     .trainable = l.trainable,
                     .weight_traffic = l.weight_traffic,
                     .weight_group = l.weight_group < 0 ? "" : model.weight_groups()[static_cast<std::size_t>(l.weight_group)],
                     .activation = l.activation,
                     .traffic = l.traffic,
                     .kv_bytes_per_token = l.kv_bytes_per_token,
                     .profiles = l.profiles});
  }
  for (std::size_t i = 0; i + 1 < model.size(); ++i) chain.add_edge(layer_id(i), layer_id(i + 1), forward[i], gradient[i]);
  return std::move(chain).build();
}

}  // namespace hetplan
