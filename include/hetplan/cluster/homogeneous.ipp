// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/homogeneous.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <hetplan/cluster/topology.hpp>

namespace hetplan {

HETPLAN_INLINE device_id median_device(const cluster& c) {
  std::vector<device_id> by_rate;
  for (const device& d : c.devices()) by_rate.push_back(d.id);
  std::stable_sort(by_rate.begin(), by_rate.end(), [&](device_id a, device_id b) { return c[a].total_compute() < c[b].total_compute(); });
  return by_rate[(by_rate.size() - 1) / 2];
}

HETPLAN_INLINE cluster homogeneous(const cluster& c, device_id like) {
  bytes least = c[like].usable_memory();
  for (const device& d : c.devices()) least = std::min(least, d.usable_memory());
  std::vector<device> alike;
  double rate = 0, latency = 0;
  int pairs = 0;
  for (const device& d : c.devices()) {
    device copy = c[like];
    copy.id = d.id;
    copy.name = d.name;
    copy.memory = least;
    copy.memory_budget.reset();
    alike.push_back(std::move(copy));
    for (const device& e : c.devices()) {
      const route* way = d.id == e.id ? nullptr : c.network().find(d.id, e.id);
      if (way == nullptr || way->via.empty()) continue;
      rate += c.network().peak_bandwidth(d.id, e.id).value();
      latency += way->latency.value();
      ++pairs;
    }
  }
  if (pairs == 0) return c.with_devices(std::move(alike));  // nothing on the network takes time
  return {c.name(), std::move(alike), mesh{bytes_per_second(rate / pairs), seconds(latency / pairs)}};
}

}  // namespace hetplan
