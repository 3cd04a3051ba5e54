// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a dynamic program over a model walks along: blocks of layers in a row, cut into serial chains.

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
  [[nodiscard]] std::size_t chain_of(std::size_t block) const;

  /// May blocks [first, last) be one stage: a piece of one chain, or one or more whole chains?
  ///
  /// @return          false for an empty or reversed range and beyond the end.
  /// Complexity       O(log chains).
  /// Source           Dora sec. 4.1: the two substates of its recurrence, eqs. 3 and 4.
  [[nodiscard]] bool is_stage(std::size_t first, std::size_t last) const;

  /// The layers of blocks [first, last), in the order of the row.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// The same row as one chain: any cut between neighbours makes a stage.
  [[nodiscard]] layer_sequence joined() const { return {blocks, {0}}; }

  friend bool operator==(const layer_sequence&, const layer_sequence&) = default;
};

/// Every layer a block, all in one chain, in the graph's numbering: any cut between neighbours is allowed.
///
/// Complexity  O(layers).
[[nodiscard]] layer_sequence sequence_of(const planning_graph& model);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/layer_sequence.ipp>
#endif
