// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A language model as its runtimes see it: an embedding, numbered blocks, a head.

#include <vector>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::exchange {

/// Every layer of a model stands in one of the three parts, each sorted by id; embedding and head may be empty.
struct runtime_layers {
  std::vector<layer_id> embedding;
  std::vector<std::vector<layer_id>> blocks;  ///< what the runtime numbers 0, 1, ...
  std::vector<layer_id> head;
};

/// Finds the blocks that a runtime numbers, by the names of the layers: of all that stands before a number at the end of a part
/// of the names (parts end at dots), what has the most numbers is the stack of blocks; on a tie the first in alphabetical order, so
/// that a block comes before its own parts. Where layers are of kind "attention" only their numbers are counted, as a block may have
/// more experts than the model has blocks. The layers without such a number are the embedding where blocks read them and the head
/// where they read blocks.
///
/// Throws       invalid_input that names the layer: no numbers, a gap, an edge back to an earlier block, a layer between blocks or
///              beside them, attention outside of the blocks (a second stack, which none of the runtimes splits).
/// Complexity   O(layers log layers + edges).
/// Source       ours: model files do not say what a block is, and every naming of them that we know numbers them: "layers.0.q" of
///              Hugging Face's models, "blk.0.attn_q" of GGUF, "l0.q" of the built-in ones.
[[nodiscard]] runtime_layers find_runtime_layers(const planning_graph& model);

}  // namespace hetplan::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/runtime_layers.ipp>
#endif
