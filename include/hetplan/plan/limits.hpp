// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Does an evaluated plan keep the devices' limits, and if not: which, where, by how much? And how much would fit?

#include <optional>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

enum class limit_kind { memory, energy, busy_share };

/// A limit that a plan breaks: `used` and `allowed` in the limit's unit (B, J, share).
struct broken_limit {
  limit_kind kind = limit_kind::memory;
  device_id device;
  double used = 0;
  double allowed = 0;

  /// By how much, relative: what makes limits of different kinds comparable.
  [[nodiscard]] double overflow() const { return used / allowed - 1; }
};

/// By which part of a limit it may be exceeded: sums of the same numbers in another order are no violation.
inline constexpr double limit_tolerance = relative_tolerance;

/// What a plan may take of a device: its usable memory and the tolerance.
[[nodiscard]] double memory_limit_bytes(const device& d);

/// How many things of so many bytes each fit into the room that is left, at most `most`; none where less than nothing is left.
[[nodiscard]] int count_that_fits(double room_bytes, double each_bytes, int most);

/// Does every used device keep its memory?
[[nodiscard]] bool within_memory(const evaluation& e, const cluster& c);

/// The limit that binds: the broken one with the largest relative overflow, or nothing.
///
/// Ties: memory, energy, busy share; then the smaller device.
[[nodiscard]] std::optional<broken_limit> find_broken_limit(const evaluation& e, const cluster& c);

/// All that are broken: memory, energy, busy share; each by device.
[[nodiscard]] std::vector<broken_limit> broken_limits(const evaluation& e, const cluster& c);

/// By how much a plan breaks its limits: the relative overflows of all that it breaks, added up; 0 where it keeps them.
[[nodiscard]] double total_overflow(const evaluation& e, const cluster& c);

/// "memory: xiaomi0 needs 13.9 GB and may use 8 GB: 5.9 GB too much".
[[nodiscard]] std::string to_string(const broken_limit& b, const cluster& c);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/plan/limits.ipp>
#endif
