// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a dynamic program over a model walks along: blocks of layers in a row, cut into serial chains.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/core/id.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Blocks of layers in an order in which every edge of the model points forward (or stays inside a block),
/// cut into serial chains: chain j is blocks [chain_first[j], chain_end(j)).
///
/// A plain value: whoever fills it keeps chain_first ascending from 0 and below size().
struct layer_sequence {
  std::vector<std::vector<layer_id>> blocks;   ///< each sorted by id
  std::vector<std::size_t> chain_first = {0};  ///< where chains begin, ascending, the first at 0

  [[nodiscard]] std::size_t size() const { return blocks.size(); }
  [[nodiscard]] std::size_t chains() const { return chain_first.size(); }
  /// One past the last block of a chain.
  [[nodiscard]] std::size_t chain_end(std::size_t chain) const { return chain + 1 < chain_first.size() ? chain_first[chain + 1] : size(); }
  /// The chain that holds a block. Complexity O(log chains).
  [[nodiscard]] std::size_t chain_of(std::size_t block) const {
    return static_cast<std::size_t>(std::upper_bound(chain_first.begin(), chain_first.end(), block) - chain_first.begin()) - 1;
  }

  /// May blocks [first, last) be one stage: a piece of one chain, or one or more whole chains?
  ///
  /// @return          false for an empty or reversed range and beyond the end.
  /// Complexity       O(log chains).
  /// Source           Dora sec. 4.1: the two substates of its recurrence, eqs. 3 and 4.
  [[nodiscard]] bool is_stage(std::size_t first, std::size_t last) const {
    if (first >= last || last > size()) return false;
    const std::size_t head = chain_of(first), tail = chain_of(last - 1);
    return head == tail || (first == chain_first[head] && last == chain_end(tail));
  }

  /// The layers of blocks [first, last), in the order of the row.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const {
    std::vector<layer_id> layers;
    for (std::size_t b = first; b < last; ++b) layers.insert(layers.end(), blocks[b].begin(), blocks[b].end());
    return layers;
  }

  /// The same row as one chain: any cut between neighbours makes a stage.
  [[nodiscard]] layer_sequence joined() const { return {blocks, {0}}; }

  friend bool operator==(const layer_sequence&, const layer_sequence&) = default;
};

/// Every layer a block, all in one chain, in the graph's numbering: any cut between neighbours is allowed.
///
/// Complexity  O(layers).
[[nodiscard]] inline layer_sequence sequence_of(const planning_graph& model) {
  layer_sequence all;
  all.blocks.reserve(model.size());
  for (const layer& l : model.layers()) all.blocks.push_back({l.id});
  return all;
}

}  // namespace hetplan
