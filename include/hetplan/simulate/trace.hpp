// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Trace of a simulated run: times of all tasks and transfers, busy time, memory and bytes.

#include <cstdint>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/simulate/network_policy.hpp>

namespace hetplan {

/// Start and end [s]. A transfer starts when it may use its route, so its latency is inside.
struct interval {
  double start_s = 0;
  double end_s = 0;
  friend bool operator==(const interval&, const interval&) = default;
};

/// Transfer rate [B/s] from `at_s` on; 0 when the transfer ends or starves.
struct rate_change {
  double at_s = 0;
  std::uint32_t transfer = 0;
  double rate = 0;
  friend bool operator==(const rate_change&, const rate_change&) = default;
};

/// Memory that a device holds from `at_s` on.
struct memory_change {
  double at_s = 0;
  std::uint32_t device = 0;
  double held_bytes = 0;
  friend bool operator==(const memory_change&, const memory_change&) = default;
};

/// The trace of a run. Vectors without a note are parallel to the task graph's.
struct trace {
  hetplan::status status;                      ///< `stopped` by an observer or by `until`: the trace ends there
  route_access access = route_access::shared;  ///< how transfers accessed their routes
  seconds latency = {};                        ///< T, the last end; or the time of `until` if that stopped the run
  std::vector<interval> computes;
  std::vector<interval> transfers;
  std::vector<double> busy_s;           ///< by device
  std::vector<double> peak_bytes;       ///< by device: static memory and activations, as they occurred
  std::vector<double> sent_bytes;       ///< by device, payload
  std::vector<double> received_bytes;   ///< by device, payload
  std::vector<double> resource_bytes;   ///< by resource: payload * weight
  std::vector<double> background_left;  ///< by background transfer: bytes not moved when the run ends
  std::vector<rate_change> rates;       ///< only if recorded, in time order
  std::vector<memory_change> memory;    ///< only if recorded, in time order

  /// Returns 1 - busy / T of a device.
  [[nodiscard]] double bubble_ratio(std::size_t device) const { return latency.value() > 0 ? 1 - busy_s[device] / latency.value() : 0; }
  friend bool operator==(const trace&, const trace&) = default;
};

}  // namespace hetplan
