// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shares of a microbatch for the devices of a replica group.

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// Hands out samples one by one, each to the device that finishes it first among those with room.
///
/// With times that do not fall as the share grows this minimises the largest time over all integer shares
/// within the caps (an exchange argument: each step takes the smallest possible next maximum).
///
/// @param samples   to hand out.
/// @param caps      by device: the most samples it has memory for.
/// @param time_s    (device index, share >= 1) -> seconds; non-decreasing in the share.
/// @return          shares by device (0 = not used), or nothing if the caps hold fewer samples.
/// Complexity       O(samples x devices) questions.
/// Throws           invalid_input (no device).
/// Determinism      ties: the smaller share, so that equal devices share evenly, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: same optimum, found greedily.
template <std::invocable<std::size_t, int> Time>
[[nodiscard]] std::optional<std::vector<int>> allocate(int samples, const std::vector<int>& caps, Time&& time_s) {
  if (caps.empty()) throw invalid_input("allocate: no devices for " + std::to_string(samples) + " samples; expected at least one");
  std::vector<int> shares(caps.size(), 0);
  std::vector<double> next(caps.size());
  for (std::size_t d = 0; d < caps.size(); ++d) next[d] = caps[d] > 0 ? time_s(d, 1) : std::numeric_limits<double>::infinity();
  for (int i = 0; i < samples; ++i) {
    std::size_t best = 0;
    for (std::size_t d = 1; d < caps.size(); ++d) {
      if (next[d] < next[best] || (next[d] == next[best] && shares[d] < shares[best])) best = d;
    }
    if (next[best] == std::numeric_limits<double>::infinity()) return std::nullopt;
    ++shares[best];
    next[best] = shares[best] < std::min(caps[best], samples) ? time_s(best, shares[best] + 1) : std::numeric_limits<double>::infinity();
  }
  return shares;
}

}  // namespace HETPLAN_NAMESPACE::partition
