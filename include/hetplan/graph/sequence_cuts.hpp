// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which tensors cross the boundaries of a layer sequence, and who reads them behind.

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
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
/// Complexity  O(tensors x boundaries that they cross) to build.
class sequence_cuts {
 public:
  sequence_cuts(const planning_graph& model, const layer_sequence& sequence)
      : ports_(sequence.size() + 1), crossings_(sequence.size() + 1) {
    std::vector<std::size_t> block_of(model.size());
    for (std::size_t b = 0; b < sequence.size(); ++b) {
      for (const layer_id l : sequence.blocks[b]) block_of[l.index()] = b;
    }
    for (const layer& l : model.layers()) {
      const std::size_t from = block_of[l.id.index()];
      std::map<std::size_t, std::pair<double, double>> readers;  // by block: most bytes
      for (const layer_edge& e : model.out_edges(l.id)) {
        const std::size_t to = block_of[e.to.index()];
        if (to == from) continue;
        auto& [forward, gradient] = readers[to];
        forward = std::max(forward, e.forward.value());
        gradient = std::max(gradient, e.gradient.value());
      }
      for (const auto& [to, most] : readers) {
        for (std::size_t b = from + 1; b <= to; ++b) {
          ports_[b].push_back(to);
          crossings_[b].push_back({from, to, l.id.index(), most.first, most.second});
        }
      }
    }
    for (std::size_t b = 0; b < ports_.size(); ++b) {
      std::sort(ports_[b].begin(), ports_[b].end());
      ports_[b].erase(std::unique(ports_[b].begin(), ports_[b].end()), ports_[b].end());
      for (crossing& c : crossings_[b]) {
        c.port = static_cast<std::size_t>(std::lower_bound(ports_[b].begin(), ports_[b].end(), c.port) - ports_[b].begin());
      }
      std::sort(crossings_[b].begin(), crossings_[b].end(), [](const crossing& x, const crossing& y) {
        return std::tuple(y.from, x.tensor, x.port) < std::tuple(x.from, y.tensor, y.port);
      });
    }
  }

  /// Ascending blocks.
  [[nodiscard]] const std::vector<std::size_t>& ports(std::size_t boundary) const { return ports_[boundary]; }
  /// By producing block, last first, then tensor, then port.
  [[nodiscard]] const std::vector<crossing>& crossings(std::size_t boundary) const { return crossings_[boundary]; }

  /// Does a stage of blocks [first, last) read anything from before it?
  [[nodiscard]] bool reads_from_before(std::size_t first, std::size_t last) const {
    return !ports_[first].empty() && ports_[first].front() < last;
  }
  /// Bytes per sample that such a stage reads from before it, and the gradients that it sends back.
  [[nodiscard]] std::pair<double, double> bytes_in(std::size_t first, std::size_t last) const {
    double forward = 0, gradient = 0;
    const auto& all = crossings_[first];
    for (std::size_t i = 0; i < all.size();) {
      double most = 0, most_back = 0;
      const std::size_t tensor = all[i].tensor;
      for (; i < all.size() && all[i].tensor == tensor; ++i) {
        if (ports_[first][all[i].port] >= last) continue;
        most = std::max(most, all[i].forward_bytes);
        most_back = std::max(most_back, all[i].gradient_bytes);
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
    for (const crossing& c : crossings_[last]) {
      if (c.from < first) break;
      auto& [forward, gradient] = most[{c.tensor, stage_of[ports_[last][c.port]]}];
      forward = std::max(forward, c.forward_bytes);
      gradient = std::max(gradient, c.gradient_bytes);
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
    for (std::size_t b = 1; b + 1 < ports_.size(); ++b) {
      if (ports_[b].size() != 1 || ports_[b].front() != b) return false;
      for (const crossing& c : crossings_[b]) {
        if (c.from + 1 != b) return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::vector<std::size_t>> ports_;
  std::vector<std::vector<crossing>> crossings_;
};

}  // namespace hetplan
