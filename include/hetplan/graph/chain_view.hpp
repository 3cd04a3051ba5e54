// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A model as a planner that only knows chains sees and runs it.

#include <cstddef>
#include <utility>

#include <hetplan/graph/planning_graph_builder.hpp>
#include <hetplan/graph/sequence_cuts.hpp>

namespace hetplan {

/// The same layers in the same numbering in series: tensors are handed on from layer to layer.
///
/// The only edges are i -> i+1. Each carries everything that crosses that boundary of the numbering: every
/// tensor once, with the most bytes that any reader behind the boundary takes, gradients alike; 0 bytes
/// where nothing crosses. Layers keep their attributes, resolved defaults included, except
/// `largest_output`, which follows from the edges.
///
/// Complexity       that of sequence_cuts.
/// Determinism      a boundary adds up its tensors, that of the last layer first.
/// Source           the model of planners that know chains only: Asteroid, EdgeShard.
[[nodiscard]] inline planning_graph chain_view(const planning_graph& model) {
  planning_graph_builder chain(model.name(), model.bytes_per_parameter(), model.tokens_per_sample());
  for (const layer& l : model.layers()) chain.add_layer(spec_of(model, l));
  const sequence_cuts cuts(model, sequence_of(model));
  for (std::size_t i = 1; i < model.size(); ++i) {
    const auto [forward, gradient] = cuts.bytes_in(i, model.size());
    chain.add_edge(layer_id(i - 1), layer_id(i), bytes(forward), bytes(gradient));
  }
  return std::move(chain).build();
}

}  // namespace hetplan
