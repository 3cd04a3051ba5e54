// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A view: the same devices where every pair has its peak bandwidth to itself.

#include <optional>
#include <span>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

namespace hetplan {

namespace detail {

/// Each route's bottleneck as a wire of its own, "A->B"; infinitely fast routes stay so.
struct private_wires {
  const network& shared;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    std::vector<resource> all;
    for (const device& a : devices) {
      for (const device& b : devices) {
        if (has_wire(a.id, b.id)) all.push_back({a.name + "->" + b.name, shared.peak_bandwidth(a.id, b.id)});
      }
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    const route* way = shared.find(from, to);
    if (way == nullptr) return std::nullopt;
    route alone{way->latency, {}};
    if (!has_wire(from, to)) return alone;
    std::size_t index = 0;
    for (const device& a : devices) {
      for (const device& b : devices) {
        if (a.id == from && b.id == to) alone.via.push_back({resource_id(index), 1});
        if (has_wire(a.id, b.id)) ++index;
      }
    }
    return alone;
  }

 private:
  [[nodiscard]] bool has_wire(device_id from, device_id to) const {
    const route* way = shared.find(from, to);
    return way != nullptr && !way->via.empty();
  }
};

}  // namespace detail

/// What a planner sees that knows bandwidths between pairs and nothing of contention: full duplex, a wire per direction.
///
/// Plans of the view are plans of the cluster: devices keep their ids and names. A plan's latency here bounds nothing; but no
/// schedule on the cluster ends before the best schedule of the same plan on the view.
/// Complexity  O(N^4) for N devices, once.  Source: the "D2D" setting of Dora, section 2.2 and Fig 2.
[[nodiscard]] inline cluster uncontended(const cluster& c) {
  return {c.name(), {c.devices().begin(), c.devices().end()}, detail::private_wires{c.network()}};
}

}  // namespace hetplan
