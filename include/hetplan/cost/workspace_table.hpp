// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Temporary memory of layers, of which one needs its own at a time.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Temporary memory of a layer: bytes for each sample of a pass, and bytes whatever the samples.
struct temporary_bytes {
  double each = 0;
  double fixed = 0;

  [[nodiscard]] double of(double samples) const { return each * samples + fixed; }
};
/// Returns the temporary memory of a layer: in training its workspace and scratch, else its forward_workspace for the
/// most tokens of a sequence that it computes in a pass.
[[nodiscard]] temporary_bytes temporary_bytes_of(const planning_graph& model, const layer& l, const workload& w);

/// Largest temporary memory of blocks [first, last) of a sequence on one device, as a function of the samples: of a layer, or of a tensor
/// that several of their layers share (device_workspace).
///
/// Shapes      for each power of two, one list of layers by first block: those of so many blocks that are largest for some samples >= 1.
/// Complexity  O(layers log layers) to build; O(layers in a list, which are few, + layers that share tensors) per query.
class workspace_table {
 public:
  workspace_table() = default;
  workspace_table(const planning_graph& model, const layer_sequence& sequence, const workload& w);

  /// Calls f(temporary_bytes) for amounts of [first, last) among which the largest is, whatever the samples.
  template <class F>
  void for_largest(std::size_t first, std::size_t last, F&& f) const {
    if (levels_.empty() || first >= last) return;
    std::size_t level = 0;
    while ((std::size_t{2} << level) <= last - first) ++level;
    const auto& lists = levels_[level];
    for (const temporary_bytes& t : lists[first]) f(t);
    if (const std::size_t other = last - (std::size_t{1} << level); other != first) {
      for (const temporary_bytes& t : lists[other]) f(t);
    }
    for (const auto& holders : shared_) {
      int inside = 0;
      double least = std::numeric_limits<double>::infinity();
      for (const auto& [block, scratch] : holders) {
        if (block < first || block >= last) continue;
        ++inside;
        least = std::min(least, scratch);
      }
      if (inside > 1) f(temporary_bytes{.fixed = (inside + 1) * least});
    }
  }
  [[nodiscard]] double bytes(std::size_t first, std::size_t last, double samples) const {
    double largest = 0;
    for_largest(first, last, [&](const temporary_bytes& t) { largest = std::max(largest, t.of(samples)); });
    return largest;
  }

 private:
  std::vector<std::vector<std::pair<std::size_t, double>>> shared_;  ///< by tensor of several layers: block and scratch of each
  std::vector<std::vector<std::vector<temporary_bytes>>> levels_;    ///< by level, then first block; empty: no layer has any
};

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cost/workspace_table.ipp>
#endif
