// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which tensors cross the boundaries of a layer sequence, and who reads them behind.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
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
  sequence_cuts(const planning_graph& model, const layer_sequence& sequence)
      : crossed_by_(sequence.size() + 1), nearest_(sequence.size() + 1, none) {
    std::vector<std::size_t> block_of(model.size());
    for (std::size_t b = 0; b < sequence.size(); ++b) {
      for (const layer_id l : sequence.blocks[b]) block_of[l.index()] = b;
    }
    for (const layer& l : model.layers()) add_tensor(model, block_of, l.id);
    // By producing block, last first, then by layer: so they stand at every boundary.
    std::stable_sort(tensors_.begin(), tensors_.end(), [](const tensor& x, const tensor& y) { return x.from > y.from; });
    for (std::uint32_t t = 0; t < tensors_.size(); ++t) {
      const std::span<const reader> all = readers_of(t);
      for (std::size_t b = tensors_[t].from + 1, next = 0; b <= all.back().block; ++b) {
        while (all[next].block < b) ++next;
        crossed_by_[b].push_back(t);
        nearest_[b] = std::min(nearest_[b], all[next].block);
      }
    }
  }

  [[nodiscard]] std::size_t boundaries() const { return crossed_by_.size(); }
  /// Ascending blocks.   Complexity  O(n log n) for n readers of tensors that cross.
  [[nodiscard]] std::vector<std::size_t> ports(std::size_t boundary) const {
    std::vector<std::size_t> all;
    for (const std::uint32_t t : crossed_by_[boundary]) {
      for (const reader& r : readers_behind(t, boundary)) all.push_back(r.block);
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  /// By producing block, last first, then tensor, then port.   Complexity  as ports.
  [[nodiscard]] std::vector<crossing> crossings(std::size_t boundary) const {
    const std::vector<std::size_t> through = ports(boundary);
    std::vector<crossing> all;
    for (const std::uint32_t t : crossed_by_[boundary]) {
      for (const reader& r : readers_behind(t, boundary)) {
        const auto port = static_cast<std::size_t>(std::lower_bound(through.begin(), through.end(), r.block) - through.begin());
        all.push_back({tensors_[t].from, port, tensors_[t].layer, r.forward_bytes, r.gradient_bytes});
      }
    }
    return all;
  }

  /// Does a stage of blocks [first, last) read anything from before it?
  [[nodiscard]] bool reads_from_before(std::size_t first, std::size_t last) const { return nearest_[first] < last; }
  /// Bytes per sample that such a stage reads from before it, and the gradients that it sends back.
  ///
  /// Complexity  O(tensors that cross x (log readers + readers in the stage, if the sequence does not end there)).
  [[nodiscard]] std::pair<double, double> bytes_in(std::size_t first, std::size_t last) const {
    double forward = 0, gradient = 0;
    for (const std::uint32_t t : crossed_by_[first]) {
      const std::span<const reader> behind = readers_behind(t, first);
      double most = 0, most_back = 0;
      if (behind.back().block < last) {
        most = behind.front().most_forward_bytes;
        most_back = behind.front().most_gradient_bytes;
      } else {
        for (const reader& r : behind) {
          if (r.block >= last) break;
          most = std::max(most, r.forward_bytes);
          most_back = std::max(most_back, r.gradient_bytes);
        }
      }
      forward += most;
      gradient += most_back;
    }
    return {forward, gradient};
  }
  /// Bytes per sample that such a stage sends to the stages behind it, and the gradients that come back.
  ///
  /// @param stage_of  by block behind `last`.
  [[nodiscard]] std::pair<double, double> bytes_out(std::size_t first, std::size_t last, const std::vector<std::size_t>& stage_of) const {
    std::map<std::pair<std::size_t, std::size_t>, std::pair<double, double>> most;  // by (tensor, reading stage)
    for (const std::uint32_t t : crossed_by_[last]) {
      if (tensors_[t].from < first) break;
      for (const reader& r : readers_behind(t, last)) {
        auto& [forward, gradient] = most[{tensors_[t].layer, stage_of[r.block]}];
        forward = std::max(forward, r.forward_bytes);
        gradient = std::max(gradient, r.gradient_bytes);
      }
    }
    std::pair<double, double> sum;
    for (const auto& [key, bytes_there_and_back] : most) {
      sum.first += bytes_there_and_back.first;
      sum.second += bytes_there_and_back.second;
    }
    return sum;
  }
  /// Is every boundary crossed from the block before it to the block behind it only?
  [[nodiscard]] bool serial() const {
    for (std::size_t b = 1; b + 1 < crossed_by_.size(); ++b) {
      const auto short_way = [&](std::uint32_t t) { return tensors_[t].from + 1 == b && readers_of(t).back().block == b; };
      if (crossed_by_[b].empty() || !std::all_of(crossed_by_[b].begin(), crossed_by_[b].end(), short_way)) return false;
    }
    return true;
  }

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

  void add_tensor(const planning_graph& model, const std::vector<std::size_t>& block_of, layer_id l) {
    const std::size_t from = block_of[l.index()];
    std::map<std::size_t, std::pair<double, double>> by_block;
    for (const layer_edge& e : model.out_edges(l)) {
      const std::size_t to = block_of[e.to.index()];
      if (to == from) continue;
      auto& [forward, gradient] = by_block[to];
      forward = std::max(forward, e.forward.value());
      gradient = std::max(gradient, e.gradient.value());
    }
    if (by_block.empty()) return;
    tensors_.push_back({from, l.index(), readers_.size(), by_block.size()});
    for (const auto& [block, most] : by_block) readers_.push_back({block, most.first, most.second, most.first, most.second});
    for (std::size_t i = readers_.size() - 1; i > tensors_.back().first_reader; --i) {
      reader& before = readers_[i - 1];
      before.most_forward_bytes = std::max(before.most_forward_bytes, readers_[i].most_forward_bytes);
      before.most_gradient_bytes = std::max(before.most_gradient_bytes, readers_[i].most_gradient_bytes);
    }
  }
  [[nodiscard]] std::span<const reader> readers_of(std::uint32_t t) const {
    return std::span(readers_).subspan(tensors_[t].first_reader, tensors_[t].readers);
  }
  [[nodiscard]] std::span<const reader> readers_behind(std::uint32_t t, std::size_t boundary) const {
    const auto all = readers_of(t);
    const auto at = std::partition_point(all.begin(), all.end(), [&](const reader& r) { return r.block < boundary; });
    return all.subspan(static_cast<std::size_t>(at - all.begin()));
  }

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
  explicit crossing_table(const sequence_cuts& cuts) {
    for (std::size_t b = 0; b < cuts.boundaries(); ++b) {
      ports_.push_back(cuts.ports(b));
      crossings_.push_back(cuts.crossings(b));
    }
  }
  [[nodiscard]] const std::vector<std::size_t>& ports(std::size_t boundary) const { return ports_[boundary]; }
  [[nodiscard]] const std::vector<crossing>& crossings(std::size_t boundary) const { return crossings_[boundary]; }

 private:
  std::vector<std::vector<std::size_t>> ports_;
  std::vector<std::vector<crossing>> crossings_;
};

}  // namespace hetplan
