// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What traffic between groups of devices costs when nothing else is on the network: what planners assume.

#include <cstddef>
#include <span>

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
  transfer_cost forward;
  transfer_cost backward;
  bool half_duplex = false;  ///< the directions of some pair share a resource: they take turns

  /// Traffic forward and backward at once.
  [[nodiscard]] double together_s(double forward_s, double backward_s) const;
  /// One volume forward, and as much backward.
  [[nodiscard]] double swap_s(double volume) const { return together_s(forward.time_s(volume), backward.time_s(volume)); }

  /// Widens to cover another pair.
  void cover(const exchange_cost& other);
  friend bool operator==(const exchange_cost&, const exchange_cost&) = default;
};

/// Peak bandwidth and latency of one ordered pair; both infinite without a route.
[[nodiscard]] transfer_cost peak_transfer(const network& net, device_id from, device_id to);

/// The slowest pair between two groups is charged for all of them: its least bandwidth, its largest latency.
///
/// Source  Asteroid, section 3.2: a communication step is charged the least bandwidth between its groups.
[[nodiscard]] exchange_cost peak_exchange(const network& net, std::span<const device_id> a, std::span<const device_id> b);

/// The worst of all pairs that have routes both ways; free where there is no such pair.
[[nodiscard]] exchange_cost worst_exchange(const network& net, std::span<const device> devices);

/// What each of n devices sends to the next in a ring all-reduce, as a share of the reduced tensor.
[[nodiscard]] constexpr double ring_share(std::size_t n) {
  const auto devices = static_cast<double>(n);
  return 2 * (devices - 1) / devices;
}

/// A ring all-reduce, per byte of the reduced tensor: each device sends its ring_share to the next in list order,
/// all at once, so a resource that several of these transfers use is charged for all of them.
///
/// Source     semantics, section 6. Deviation from Asteroid, eq. 5, which divides by the least bandwidth alone and
///            so takes a shared medium for n wires.
/// Complexity O(n * resources on a route).
[[nodiscard]] transfer_cost ring_reduction(const network& net, std::span<const device_id> devices);

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/exchange.ipp>
#endif
