// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What traffic between groups of devices costs when nothing else is on the network: what planners assume.

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

/// Seconds of a transfer of a volume: latency_s + volume s_per_byte. Infinite where a route is missing.
struct transfer_cost {
  double latency_s = 0;
  double s_per_byte = 0;

  [[nodiscard]] double time_s(double volume) const { return volume > 0 ? latency_s + volume * s_per_byte : latency_s; }
  friend bool operator==(const transfer_cost&, const transfer_cost&) = default;
};

/// Traffic between two groups in both directions.
struct exchange_cost {
  transfer_cost there;
  transfer_cost back;
  bool half_duplex = false;  ///< the directions of some pair share a resource: they take turns

  /// Traffic there and back at once.
  [[nodiscard]] double together_s(double there_s, double back_s) const {
    return half_duplex ? there_s + back_s : std::max(there_s, back_s);
  }
  /// One volume there, and as much back.
  [[nodiscard]] double swap_s(double volume) const { return together_s(there.time_s(volume), back.time_s(volume)); }

  /// Widens to cover another pair.
  void cover(const exchange_cost& other) {
    there = {std::max(there.latency_s, other.there.latency_s), std::max(there.s_per_byte, other.there.s_per_byte)};
    back = {std::max(back.latency_s, other.back.latency_s), std::max(back.s_per_byte, other.back.s_per_byte)};
    half_duplex = half_duplex || other.half_duplex;
  }
  friend bool operator==(const exchange_cost&, const exchange_cost&) = default;
};

/// Peak bandwidth and latency of one ordered pair; both infinite without a route.
[[nodiscard]] inline transfer_cost peak_transfer(const network& net, device_id from, device_id to) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const route* r = net.find(from, to);
  if (r == nullptr) return {inf, inf};
  return {r->latency.value(), 1 / net.peak_bandwidth(from, to).value()};
}

/// The slowest pair between two groups is charged for all of them: its least bandwidth, its largest latency.
///
/// Source  Asteroid, section 3.2: a communication step is charged the least bandwidth between its groups.
[[nodiscard]] inline exchange_cost peak_exchange(const network& net, std::span<const device_id> a, std::span<const device_id> b) {
  exchange_cost all;
  for (const device_id i : a) {
    for (const device_id j : b) {
      exchange_cost pair{peak_transfer(net, i, j), peak_transfer(net, j, i)};
      const route *there = net.find(i, j), *back = net.find(j, i);
      if (there != nullptr && back != nullptr) {
        for (const resource_use& u : there->via) {
          for (const resource_use& v : back->via) pair.half_duplex = pair.half_duplex || u.resource == v.resource;
        }
      }
      all.cover(pair);
    }
  }
  return all;
}

/// The worst of all pairs that have routes both ways; free where there is no such pair.
[[nodiscard]] inline exchange_cost worst_exchange(const network& net, std::span<const device> devices) {
  exchange_cost worst;
  for (const device& a : devices) {
    for (const device& b : devices) {
      if (a.id >= b.id || net.find(a.id, b.id) == nullptr || net.find(b.id, a.id) == nullptr) continue;
      const device_id one[] = {a.id}, other[] = {b.id};
      worst.cover(peak_exchange(net, one, other));
      worst.cover(peak_exchange(net, other, one));
    }
  }
  return worst;
}

/// What each of n devices sends to the next in a ring all-reduce, as a share of the reduced tensor.
[[nodiscard]] constexpr double ring_share(std::size_t n) {
  const auto devices = static_cast<double>(n);
  return 2 * (devices - 1) / devices;
}

/// A ring all-reduce, per byte of the reduced tensor: each device sends its ring_share to the next in list order,
/// all at once, so a resource that several of these flows use is charged for all of them.
///
/// Source     semantics, section 6. Deviation from Asteroid, eq. 5, which divides by the least bandwidth alone and
///            so takes a shared medium for n wires.
/// Complexity O(n * resources on a route).
[[nodiscard]] inline transfer_cost ring_reduction(const network& net, std::span<const device_id> devices) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (devices.size() < 2) return {};
  std::vector<double> load(net.resources().size(), 0);
  transfer_cost ring;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const route* r = net.find(devices[i], devices[(i + 1) % devices.size()]);
    if (r == nullptr) return {inf, inf};
    ring.latency_s = std::max(ring.latency_s, r->latency.value());
    for (const resource_use& u : r->via) load[u.resource.index()] += u.weight;
  }
  for (std::size_t r = 0; r < load.size(); ++r) {
    ring.s_per_byte = std::max(ring.s_per_byte, ring_share(devices.size()) * load[r] / net.resources()[r].capacity.value());
  }
  return ring;
}

}  // namespace hetplan
