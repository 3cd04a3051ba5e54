// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/hetpipe.hpp>

namespace HETPLAN_NAMESPACE::recipes::detail {

HETPLAN_INLINE std::vector<device_id> fastest_first(const cluster& c) {
  std::vector<device_id> by_rate;
  for (const device& d : c.devices()) by_rate.push_back(d.id);
  std::stable_sort(by_rate.begin(), by_rate.end(), [&](device_id a, device_id b) { return c[a].total_compute() > c[b].total_compute(); });
  return by_rate;
}

HETPLAN_INLINE std::vector<std::vector<char>> virtual_workers(const cluster& c, std::size_t workers) {
  const std::vector<device_id> by_rate = fastest_first(c);
  std::vector<std::vector<char>> members(workers, std::vector<char>(c.size(), 0));
  for (std::size_t i = 0; i < by_rate.size(); ++i) members[i % workers][by_rate[i].index()] = 1;
  return members;
}

}  // namespace HETPLAN_NAMESPACE::recipes::detail
