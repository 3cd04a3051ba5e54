// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/size_for.hpp>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace hetplan::serve {

HETPLAN_INLINE edge_cloud with_gpus(edge_cloud cloud, int count) {
  for (auto& s : cloud.servers) {
    if (!s.gpus.empty()) s.gpus = std::vector<gpu>(static_cast<std::size_t>(count), s.gpus.front());
  }
  return cloud;
}

HETPLAN_INLINE std::size_t used_gpus(const deployment& d) {
  std::set<gpu_slot> used;
  for (const auto& i : d.instances) used.insert(i.gpus.begin(), i.gpus.end());
  return used.size();
}

}  // namespace hetplan::serve
