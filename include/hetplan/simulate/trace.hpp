// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What happened in a simulated run: when every task and transfer ran, and what that took.

#include <cstdint>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/simulate/network_policy.hpp>

namespace hetplan {

/// Start and end [s]; a transfer's start is when it may use its route (its latency is inside).
struct interval {
  double start_s = 0;
  double end_s = 0;
  friend bool operator==(const interval&, const interval&) = default;
};

/// From `at_s` on, a transfer drains at `rate` [B/s]; 0 when it ends or is starved.
struct rate_change {
  double at_s = 0;
  std::uint32_t transfer = 0;
  double rate = 0;
  friend bool operator==(const rate_change&, const rate_change&) = default;
};

/// From `at_s` on, a device holds `held_bytes`.
struct memory_change {
  double at_s = 0;
  std::uint32_t device = 0;
  double held_bytes = 0;
  friend bool operator==(const memory_change&, const memory_change&) = default;
};

/// The trace of a run. Vectors are parallel to the task graph's; by device or resource where said.
struct trace {
  hetplan::status status;                      ///< `stopped` by an observer or by `until`: what happened so far
  route_access access = route_access::shared;  ///< when transfers were allowed to start
  seconds latency = {};                        ///< T, the last end; where `until` stopped the run, that time
  std::vector<interval> computes;
  std::vector<interval> transfers;
  std::vector<double> busy_s;           ///< by device
  std::vector<double> peak_bytes;       ///< by device: static + activations, as it happened
  std::vector<double> sent_bytes;       ///< by device, payload
  std::vector<double> received_bytes;   ///< by device, payload
  std::vector<double> resource_bytes;   ///< by resource: payload * weight
  std::vector<double> background_left;  ///< by background transfer: bytes that have not moved when the run ends
  std::vector<rate_change> rates;       ///< only if recorded, in time order
  std::vector<memory_change> memory;    ///< only if recorded, in time order

  /// 1 - busy / T of a device.
  [[nodiscard]] double bubble_ratio(std::size_t device) const { return latency.value() > 0 ? 1 - busy_s[device] / latency.value() : 0; }
  friend bool operator==(const trace&, const trace&) = default;
};

}  // namespace hetplan
