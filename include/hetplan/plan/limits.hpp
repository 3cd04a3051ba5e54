// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Device limits of evaluated plans: which are broken, where, and by how much.

#include <optional>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

enum class limit_kind { memory, energy, busy_share };

/// Limit that a plan breaks; `used` and `allowed` are in the limit's unit (B, J, share).
struct broken_limit {
  limit_kind kind = limit_kind::memory;
  device_id device;
  double used = 0;
  double allowed = 0;

  /// Returns the relative overflow, which makes limits of different kinds comparable.
  [[nodiscard]] double overflow() const { return used / allowed - 1; }
};

/// Relative overflow that is tolerated: sums of the same numbers in another order are no violation.
inline constexpr double limit_tolerance = relative_tolerance;

/// Returns the memory that a plan may take of a device: its usable memory and the tolerance.
[[nodiscard]] double memory_limit_bytes(const device& d);

/// Returns how many items of `each_bytes` fit into `room_bytes`, at most `most`; 0 if the room is negative.
[[nodiscard]] int count_that_fits(double room_bytes, double each_bytes, int most);

/// Returns whether every used device keeps its memory limit.
[[nodiscard]] bool within_memory(const evaluation& e, const cluster& c);

/// Returns the broken limit with the largest relative overflow, or nothing. Ties: memory, energy, busy share; then by device.
[[nodiscard]] std::optional<broken_limit> find_broken_limit(const evaluation& e, const cluster& c);

/// Returns all broken limits: memory, energy, busy share; each by device.
[[nodiscard]] std::vector<broken_limit> broken_limits(const evaluation& e, const cluster& c);

/// Returns the sum of the relative overflows of all broken limits; 0 if none is broken.
[[nodiscard]] double total_overflow(const evaluation& e, const cluster& c);

/// Returns, e.g., "memory: xiaomi0 needs 13.9 GB and may use 8 GB: 5.9 GB too much".
[[nodiscard]] std::string to_string(const broken_limit& b, const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/limits.ipp>
#endif
