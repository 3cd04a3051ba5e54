// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a dynamic program over a model walks along: blocks of layers in a row, cut into serial chains.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
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

// Which tensors cross the boundaries of a layer sequence, and who reads them behind.

/// A tensor on its way over a boundary, per sample: made in block `from`, read behind by `port`.
struct crossing {
  std::size_t from = 0;
  std::size_t port = 0;    ///< index into the ports of the boundary
  std::size_t tensor = 0;  ///< the producing layer: a tensor that one stage reads at several ports crosses once
  double forward_bytes = 0;
  double gradient_bytes = 0;
};

/// The boundaries 0 ... size of a sequence. The ports of a boundary are the blocks behind it that read something
/// from before it: through them what lies behind depends on what lies before.
///
/// Each tensor's readers are kept once, however many boundaries it crosses on its way to them.
///
/// Complexity  O(edges + tensors x boundaries that they cross) to build, in numbers of 4 bytes.
class sequence_cuts {
 public:
  sequence_cuts(const planning_graph& model, const layer_sequence& sequence);

  [[nodiscard]] std::size_t boundaries() const { return crossed_by_.size(); }
  /// Ascending blocks.   Complexity  O(n log n) for n readers of tensors that cross.
  [[nodiscard]] std::vector<std::size_t> ports(std::size_t boundary) const;
  /// By producing block, last first, then tensor, then port.   Complexity  as ports.
  [[nodiscard]] std::vector<crossing> crossings(std::size_t boundary) const;

  /// Does a stage of blocks [first, last) read anything from before it?
  [[nodiscard]] bool reads_from_before(std::size_t first, std::size_t last) const { return nearest_[first] < last; }
  /// Bytes per sample that such a stage reads from before it, and the gradients that it sends back.
  ///
  /// Complexity  O(tensors that cross x (log readers + readers in the stage, if the sequence does not end there)).
  [[nodiscard]] std::pair<double, double> bytes_in(std::size_t first, std::size_t last) const;
  /// Bytes per sample that such a stage sends to the stages behind it, and the gradients that come back.
  ///
  /// @param stage_of  by block behind `last`.
  [[nodiscard]] std::pair<double, double> bytes_out(std::size_t first, std::size_t last, const std::vector<std::size_t>& stage_of) const;
  /// Is every boundary crossed from the block before it to the block behind it only?
  [[nodiscard]] bool serial() const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  struct reader {
    std::size_t block;
    double forward_bytes, gradient_bytes;            ///< the most that its layers read
    double most_forward_bytes, most_gradient_bytes;  ///< of this reader and those behind it
  };
  struct tensor {
    std::size_t from, layer, first_reader, readers;
  };

  void add_tensor(const planning_graph& model, const std::vector<std::size_t>& block_of, layer_id l);
  [[nodiscard]] std::span<const reader> readers_of(std::uint32_t t) const;
  [[nodiscard]] std::span<const reader> readers_after(std::uint32_t t, std::size_t boundary) const;

  std::vector<reader> readers_;  ///< by tensor, then ascending blocks
  std::vector<tensor> tensors_;
  std::vector<std::vector<std::uint32_t>> crossed_by_;  ///< tensors by boundary
  std::vector<std::size_t> nearest_;                    ///< by boundary: its first port
};

/// Ports and crossings of all boundaries spelled out, for searches that look at each many times.
///
/// Complexity  O(crossings): a tensor counts once for each boundary that it crosses and each reader behind it.
class crossing_table {
 public:
  explicit crossing_table(const sequence_cuts& cuts);
  [[nodiscard]] const std::vector<std::size_t>& ports(std::size_t boundary) const { return ports_[boundary]; }
  [[nodiscard]] const std::vector<crossing>& crossings(std::size_t boundary) const { return crossings_[boundary]; }

 private:
  std::vector<std::vector<std::size_t>> ports_;
  std::vector<std::vector<crossing>> crossings_;
};

// Where one would cut a layer sequence: boundaries that carry less than their neighbours.

/// The sequence layer by layer, in an order in which every edge points forward. Source: own.
[[nodiscard]] layer_sequence each_layer_of(const layer_sequence& s);

/// The boundaries that carry no more than their neighbours.
///
/// @param carried  bytes by boundary; boundary 0 is before the first block.
/// @return         ascending, without 0 and the end.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const std::vector<double>& carried);

/// The same for what crosses the boundaries of a sequence, per sample, there and back.
///
/// @return     ascending, without 0 and the end.
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const planning_graph& model, const layer_sequence& s);

/// The layers in their own numbering, in blocks that end at light boundaries, at most `most` of them, of about equal forward FLOP, or
/// of about as many layers in a model that has profiles instead.
///
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] layer_sequence light_blocks(const planning_graph& model, std::size_t most);

// A model as a planner that only knows chains sees and runs it.

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/graph/layer_sequence.ipp>
#endif
