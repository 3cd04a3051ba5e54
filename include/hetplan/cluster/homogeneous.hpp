// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A view: all devices alike, on wires of their own that are all alike.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>

namespace hetplan {

/// The device in the middle of a cluster by compute rate, the slower of two middles; ties: the smaller id.
///
/// Complexity  O(N log N).  Source  own.
[[nodiscard]] inline device_id median_device(const cluster& c) {
  std::vector<device_id> by_rate;
  for (const device& d : c.devices()) by_rate.push_back(d.id);
  std::stable_sort(by_rate.begin(), by_rate.end(), [&](device_id a, device_id b) { return c[a].total_compute() < c[b].total_compute(); });
  return by_rate[(by_rate.size() - 1) / 2];
}

/// What a planner for clusters of equal machines sees: each device is a copy of one of them, with the least memory of all, since
/// whoever may state one memory only states one that all have; each pair has a full-duplex wire of the mean peak bandwidth
/// and the mean latency of the pairs that are joined at finite rates.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined and each has the accelerators that it
/// splits tensors among: devices keep their ids and names.
///
/// @param like  the device that all look like.
/// Complexity   O(N^2).
/// Source       what Alpa, PipeDream and Dapple assume (Asteroid, section 5.1); which device stands for all is ours.
[[nodiscard]] inline cluster homogeneous(const cluster& c, device_id like) {
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
/// Each device like the median one.
[[nodiscard]] inline cluster homogeneous(const cluster& c) { return homogeneous(c, median_device(c)); }

}  // namespace hetplan
