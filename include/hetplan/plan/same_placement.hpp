// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Is the work of two plans in the same places?

#include <algorithm>
#include <tuple>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan {

namespace detail {

/// Who holds what of which layer: one entry per distinct (layer, device, tensor-parallel degree, part of the optimizer's state,
/// of so many parts), sorted.
[[nodiscard]] inline std::vector<std::tuple<layer_id, device_id, int, int, int>> placement_of(const plan& p) {
  std::vector<std::tuple<layer_id, device_id, int, int, int>> pairs;
  for (const stage& s : p.stages) {
    const int parts = s.state_shards();
    for (const layer_id l : s.layers) {
      for (int i = 0; const assignment& a : s.devices) pairs.emplace_back(l, a.device, a.tensor_parallel, parts > 1 ? i++ : 0, parts);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace detail

/// Do the same devices run the same layers, cut up in the same way? Then no weights move from one plan to the other.
///
/// Microbatch sizes, the sizes of shares, names and how layers are grouped into stages do not matter, nor does the order of
/// devices, but where they share out the optimizer's state: the order says who has which part of it.
/// In generation shares decide whose memory has which sequence's cache: those may move all the same.
///
/// Complexity  O(n log n) for n layers of all stages x devices of their stage.
[[nodiscard]] inline bool same_placement(const plan& a, const plan& b) {
  return a.stages == b.stages || detail::placement_of(a) == detail::placement_of(b);
}

}  // namespace hetplan
