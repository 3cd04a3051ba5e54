// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/same_placement.hpp>

#include <algorithm>

namespace hetplan {

namespace detail {

HETPLAN_INLINE std::vector<std::tuple<layer_id, device_id, int, int, int>> placement_of(const plan& p) {
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

HETPLAN_INLINE bool same_placement(const plan& a, const plan& b) {
  return a.stages == b.stages || detail::placement_of(a) == detail::placement_of(b);
}

}  // namespace hetplan
