// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Layer sequences, the domain of dynamic programs over a model: blocks of layers in a row, cut into serial chains.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Blocks of layers in an order in which every edge of the model points forward or stays inside a block, cut into serial chains:
/// chain j is blocks [chain_first[j], chain_end(j)). A plain value: the user keeps chain_first ascending from 0 and below size().
struct layer_sequence {
  std::vector<std::vector<layer_id>> blocks;   ///< each sorted by id
  std::vector<std::size_t> chain_first = {0};  ///< first blocks of the chains, ascending from 0

  [[nodiscard]] std::size_t size() const { return blocks.size(); }
  [[nodiscard]] std::size_t chains() const { return chain_first.size(); }
  /// Returns one past the last block of a chain.
  [[nodiscard]] std::size_t chain_end(std::size_t chain) const { return chain + 1 < chain_first.size() ? chain_first[chain + 1] : size(); }
  /// Returns the chain of a block. Complexity O(log chains).
  [[nodiscard]] std::size_t chain_of(std::size_t block) const;

  /// Returns whether blocks [first, last) may be one stage: a piece of one chain, or whole chains. False if empty or out of range.
  /// Complexity  O(log chains).   Source  Dora sec. 4.1: the two substates of its recurrence, eqs. 3 and 4.
  [[nodiscard]] bool is_stage(std::size_t first, std::size_t last) const;

  /// Returns the layers of blocks [first, last), in the order of the sequence.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// Returns the same blocks as one chain: any cut between neighbours makes a stage.
  [[nodiscard]] layer_sequence joined() const { return {blocks, {0}}; }

  friend bool operator==(const layer_sequence&, const layer_sequence&) = default;
};

/// Returns the sequence with blocks cut where layers of different places follow each other, so that stages can hold one place alone.
///
/// @param place  by layer id; empty: the sequence as it is.
/// Complexity    O(layers).
[[nodiscard]] layer_sequence cut_between_places(layer_sequence s, std::span<const device_id> place);

/// Returns every layer as a block, in one chain and in the graph's numbering: any cut between neighbours is allowed.
/// Complexity  O(layers).
[[nodiscard]] layer_sequence sequence_of(const planning_graph& model);

/// Tensor that crosses a boundary, per sample: produced in block `from`, read behind the boundary at `port`.
struct crossing {
  std::size_t from = 0;
  std::size_t port = 0;    ///< index into the ports of the boundary
  std::size_t tensor = 0;  ///< producing layer; a tensor that one stage reads at several ports crosses once
  double forward_bytes = 0;
  double gradient_bytes = 0;
  double first_bytes = 0;  ///< generation: forward_bytes of a pass until the first token, if the table knows passes apart
  double later_bytes = 0;  ///< generation: of a pass behind it
};

/// Returns the bytes of all crossings of a boundary.
[[nodiscard]] inline crossing sum_of(std::span<const crossing> all) {
  crossing sum;
  for (const crossing& c : all) {
    sum.forward_bytes += c.forward_bytes;
    sum.gradient_bytes += c.gradient_bytes;
    sum.first_bytes += c.first_bytes;
    sum.later_bytes += c.later_bytes;
  }
  return sum;
}

/// Tensors that cross the boundaries 0 ... size of a sequence. The ports of a boundary are the blocks behind it that read tensors
/// from before it: later blocks depend on earlier ones only through them. A tensor's readers are stored once.
///
/// Complexity  O(edges + boundaries crossed, over all tensors) to build, in numbers of 4 bytes.
class sequence_cuts {
 public:
  /// @param edge_shares  by index into planning_graph::edges: the part of an edge's bytes that counts; empty: all of each.
  sequence_cuts(const planning_graph& model, const layer_sequence& sequence, std::span<const double> edge_shares = {});

  [[nodiscard]] std::size_t boundaries() const { return crossed_by_.size(); }
  /// Returns the ports of a boundary, ascending.   Complexity  O(n log n) for n readers of tensors that cross.
  [[nodiscard]] std::vector<std::size_t> ports(std::size_t boundary) const;
  /// Returns the crossings of a boundary by producing block, last first, then tensor, then port.   Complexity  as ports.
  [[nodiscard]] std::vector<crossing> crossings(std::size_t boundary) const;

  /// Returns whether a stage of blocks [first, last) reads a tensor from before it.
  [[nodiscard]] bool reads_from_before(std::size_t first, std::size_t last) const { return nearest_[first] < last; }
  /// Returns the bytes per sample that a stage of blocks [first, last) reads from before it, and the gradient bytes it sends back.
  /// Complexity  O(tensors that cross x (log readers + readers in the stage, if the sequence continues behind it)).
  [[nodiscard]] std::pair<double, double> bytes_in(std::size_t first, std::size_t last) const;
  /// Returns the bytes per sample that a stage of blocks [first, last) sends to later stages, and the gradient bytes that return.
  ///
  /// @param stage_of  Stage by block; read behind `last`.
  [[nodiscard]] std::pair<double, double> bytes_out(std::size_t first, std::size_t last, const std::vector<std::size_t>& stage_of) const;
  /// True if every boundary is crossed only from the block before it to the block behind it.
  [[nodiscard]] bool serial() const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  struct reader {
    std::size_t block;
    double forward_bytes, gradient_bytes;            ///< most that one of its layers reads
    double most_forward_bytes, most_gradient_bytes;  ///< maximum over this reader and those behind it
  };
  struct tensor {
    std::size_t from, layer, first_reader, readers;
  };

  void add_tensor(const planning_graph& model, const std::vector<std::size_t>& block_of, layer_id l, std::span<const double> edge_shares);
  [[nodiscard]] std::span<const reader> readers_of(std::uint32_t t) const;
  [[nodiscard]] std::span<const reader> readers_after(std::uint32_t t, std::size_t boundary) const;

  std::vector<reader> readers_;  ///< by tensor, then ascending blocks
  std::vector<tensor> tensors_;
  std::vector<std::vector<std::uint32_t>> crossed_by_;  ///< by boundary: its tensors
  std::vector<std::size_t> nearest_;                    ///< by boundary: its first port
};

/// Explicit lists of the ports and crossings of all boundaries, for searches that look at each many times.
/// Complexity  O(crossings): one for each tensor, boundary that it crosses and reader behind the boundary.
class crossing_table {
 public:
  explicit crossing_table(const sequence_cuts& cuts);
  /// The same of a run of generation: in the mean of all passes, until the first token, and behind it.
  crossing_table(const sequence_cuts& cuts, const sequence_cuts& first, const sequence_cuts& later);
  [[nodiscard]] const std::vector<std::size_t>& ports(std::size_t boundary) const { return ports_[boundary]; }
  [[nodiscard]] const std::vector<crossing>& crossings(std::size_t boundary) const { return crossings_[boundary]; }

 private:
  std::vector<std::vector<std::size_t>> ports_;
  std::vector<std::vector<crossing>> crossings_;
};

/// Returns the sequence layer by layer, in an order in which every edge points forward. Source: own.
[[nodiscard]] layer_sequence each_layer_of(const layer_sequence& s);

/// Returns the boundaries that carry no more than their neighbours, ascending, without both ends.
///
/// @param carried  Bytes by boundary; boundary 0 is before the first block.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const std::vector<double>& carried);

/// Returns the light boundaries of a sequence by bytes per sample, both directions together; ascending, without both ends.
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] std::vector<std::size_t> light_boundaries(const planning_graph& model, const layer_sequence& s);

/// Returns the layers in their own numbering, in at most `most` blocks that end at light boundaries. Blocks have about equal forward
/// FLOP, or about equally many layers in a model with profiles only.
///
/// Complexity  that of sequence_cuts.   Source  own.
[[nodiscard]] layer_sequence light_blocks(const planning_graph& model, std::size_t most);
/// The same for another order of the layers, one of them in each block.
[[nodiscard]] layer_sequence light_blocks(const planning_graph& model, const layer_sequence& all, std::size_t most);

/// Returns the model as seen by planners that know chains only: tensors are handed on from layer to layer, in the same numbering.
///
/// The only edges are i -> i+1. Each carries every tensor that crosses that boundary once, with the most bytes that any reader behind
/// the boundary takes, gradients alike; 0 bytes if nothing crosses. Layers keep their attributes, resolved defaults included, except
/// `largest_output`, which follows from the edges, and where they would run less often than a neighbour in the chain may: a layer per
/// request with others before it counts as one of tokens, and one of the last token with others behind it computes all.
///
/// Complexity   that of sequence_cuts.
/// Determinism  a boundary adds up its tensors, that of the last layer first.
/// Source       the chain model of Asteroid and EdgeShard.
[[nodiscard]] inline planning_graph chain_view(const planning_graph& model) {
  planning_graph_builder chain(model.name(), model.facts());
  std::size_t requests = 0, last_tokens = model.size();
  const auto layers = model.layers();
  while (requests < layers.size() && layers[requests].runs_per_request()) ++requests;
  while (last_tokens > 0 && layers[last_tokens - 1].sequence.last_token) --last_tokens;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layer_spec spec = spec_of(model, layers[i]);
    if (i >= requests) spec.sequence.per = layer_scope::token;
    if (i < last_tokens) spec.sequence.last_token = false;
    chain.add_layer(std::move(spec));
  }
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
