// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Shares of a microbatch for the devices of a replica group.

#include <algorithm>
#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/partition/hand_out.hpp>

namespace hetplan::partition {

/// Shares of the samples for devices that all differ: hand_out with one device each.
///
/// @param caps      by device: the most samples it has memory for.
/// @param time_s    (device index, share >= 1) -> seconds; finite, non-decreasing in the share.
/// @return          shares by device (0 = not used), or nothing if the caps hold fewer samples.
/// Complexity       O(samples x devices).
/// Throws           invalid_input (no device).
/// Determinism      ties: the smaller share, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: same optimum, found greedily (hand_out).
template <std::invocable<std::size_t, int> Time>
[[nodiscard]] std::optional<std::vector<int>> allocate(int samples, const std::vector<int>& caps, Time&& time_s) {
  if (caps.empty()) throw invalid_input("allocate: no devices for " + std::to_string(samples) + " samples; expected at least one");
  struct one_device : sample_taker {
    std::size_t index;
  };
  std::vector<one_device> devices;
  // No share above `samples` is asked about.
  for (std::size_t d = 0; d < caps.size(); ++d) devices.push_back({{.cap = std::min(caps[d], samples)}, d});
  if (!hand_out(samples, devices, [&](const one_device& d, int share) { return time_s(d.index, share); })) return std::nullopt;
  std::vector<int> shares;
  for (const one_device& d : devices) shares.push_back(d.taken);
  return shares;
}

}  // namespace hetplan::partition
