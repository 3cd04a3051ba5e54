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

/// Equal devices while samples are handed out: they fill evenly.
struct sample_taker {
  int devices = 1;
  int cap = 0;        ///< the most samples that each has memory for
  int taken = 0;      ///< by all of them
  double next_s = 0;  ///< of the device whose turn it is, with one more

  [[nodiscard]] int next_share() const { return taken / devices + 1; }
  [[nodiscard]] int largest_share() const { return (taken + devices - 1) / devices; }
  /// Of the i-th of the devices: the first have one more where they do not come out even.
  [[nodiscard]] int share(int i) const { return taken / devices + (i < taken % devices ? 1 : 0); }
};

/// Hands out samples one by one, each to the device that finishes it first among those with room.
///
/// With times that do not fall as the share grows this minimises the largest time over all integer shares
/// within the caps (an exchange argument: each step takes the smallest possible next maximum).
///
/// @param samples   to hand out, on top of what the takers have.
/// @param takers    not empty; gives them their samples. A user's own adds what identifies it.
/// @param time_s    (taker, share >= 1) -> seconds; non-decreasing in the share.
/// @return          false if the caps hold fewer samples.
/// Complexity       O(samples x takers); a question for every share of a taker.
/// Determinism      ties: the smaller share, so that equal devices share evenly, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: same optimum, found greedily.
template <std::derived_from<sample_taker> Taker, std::invocable<const Taker&, int> Time>
[[nodiscard]] bool hand_out(int samples, std::vector<Taker>& takers, const Time& time_s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto next = [&](const Taker& t) { return t.next_share() <= t.cap ? time_s(t, t.next_share()) : inf; };
  for (Taker& t : takers) t.next_s = next(t);
  for (int i = 0; i < samples; ++i) {
    Taker* best = &takers.front();
    for (Taker& t : takers) {
      if (t.next_s < best->next_s || (t.next_s == best->next_s && t.next_share() < best->next_share())) best = &t;
    }
    if (best->next_s == inf) return false;
    if (++best->taken % best->devices == 0) best->next_s = next(*best);
  }
  return true;
}

/// Shares of the samples for devices that all differ: hand_out with one device each.
///
/// @param caps      by device: the most samples it has memory for.
/// @param time_s    (device index, share >= 1) -> seconds; non-decreasing in the share.
/// @return          shares by device (0 = not used), or nothing if the caps hold fewer samples.
/// Throws           invalid_input (no device).
template <std::invocable<std::size_t, int> Time>
[[nodiscard]] std::optional<std::vector<int>> allocate(int samples, const std::vector<int>& caps, Time&& time_s) {
  if (caps.empty()) throw invalid_input("allocate: no devices for " + std::to_string(samples) + " samples; expected at least one");
  struct device : sample_taker {
    std::size_t index;
  };
  std::vector<device> devices;
  for (std::size_t d = 0; d < caps.size(); ++d) devices.push_back({{.cap = std::min(caps[d], samples)}, d});
  if (!hand_out(samples, devices, [&](const device& d, int share) { return time_s(d.index, share); })) return std::nullopt;
  std::vector<int> shares;
  for (const device& d : devices) shares.push_back(d.taken);
  return shares;
}

}  // namespace HETPLAN_NAMESPACE::partition
