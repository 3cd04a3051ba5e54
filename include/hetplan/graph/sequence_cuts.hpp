// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which tensors cross the boundaries of a layer sequence, and who reads them behind.

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>

namespace hetplan {

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

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/graph/sequence_cuts.ipp>
#endif
