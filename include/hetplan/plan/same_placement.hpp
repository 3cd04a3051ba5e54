// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Is the work of two plans in the same places?

#include <algorithm>
#include <tuple>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan {

namespace detail {

/// Who holds what of which layer: one entry per distinct (layer, device, tensor-parallel degree), sorted.
[[nodiscard]] inline std::vector<std::tuple<layer_id, device_id, int>> placement_of(const plan& p) {
  std::vector<std::tuple<layer_id, device_id, int>> pairs;
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) {
      for (const assignment& a : s.devices) pairs.emplace_back(l, a.device, a.tensor_parallel);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace detail

/// Do the same devices run the same layers, cut up in the same way? Then no weights move from one plan to the other.
///
/// Microbatch sizes, the sizes of shares, the order of devices, names and how layers are grouped into stages do not matter.
/// In generation shares decide whose memory has which sequence's cache: those may move all the same.
///
/// Complexity  O(n log n) for n layers of all stages x devices of their stage.
[[nodiscard]] inline bool same_placement(const plan& a, const plan& b) {
  return a.stages == b.stages || detail::placement_of(a) == detail::placement_of(b);
}

}  // namespace hetplan
