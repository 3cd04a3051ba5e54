// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Samples of a microbatch, handed out among classes of equal devices.

#include <algorithm>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/linkage.hpp>

namespace hetplan::partition {

/// Equal devices while samples are handed out: they fill evenly.
struct sample_taker {
  int devices = 1;
  int cap = 0;        ///< the most samples that each has memory for
  int taken = 0;      ///< by all of them
  double next_s = 0;  ///< time of the device whose turn it is, with one portion more

  [[nodiscard]] int largest_share() const { return (taken + devices - 1) / devices; }
  /// Of the i-th of the devices: the first have one more where they do not come out even.
  [[nodiscard]] int share(int i) const { return taken / devices + (i < taken % devices ? 1 : 0); }
};

/// Portions in which samples are handed out at most, about.
inline constexpr int most_portions = 256;

/// Hands out samples one by one, each to the device that finishes it first among those with room.
///
/// With times that do not fall as the share grows this minimises the largest time over all integer shares
/// within the caps (an exchange argument: each step takes the smallest possible next maximum). More than most_portions samples go in
/// equal portions, the last ones of a taker as large as its room: then it is within a portion of that minimum.
///
/// @param samples   to hand out, on top of what the takers have.
/// @param takers    not empty; gives them their samples. A derived type adds what identifies it.
/// @param time_s    (taker, share >= 1) -> seconds; finite, non-decreasing in the share. Asked once for each share that the devices of a
///                  taker reach, and for one more.
/// @return          false if the caps hold fewer samples; the takers then have what did fit.
/// Complexity       O(min(samples, most_portions) x takers).
/// Determinism      ties: the smaller share, so that equal devices share evenly, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: same optimum, found greedily.
template <std::derived_from<sample_taker> Taker, std::invocable<const Taker&, int> Time>
[[nodiscard]] bool hand_out(int samples, std::vector<Taker>& takers, const Time& time_s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  int portion = samples > most_portions ? (samples - 1) / most_portions + 1 : 1;
  const auto taken_next = [&](const Taker& t) {
    return static_cast<int>(std::min<long long>(portion, static_cast<long long>(t.cap) * t.devices - t.taken));
  };
  const auto next_share = [&](const Taker& t) { return (t.taken + taken_next(t) - 1) / t.devices + 1; };
  const auto ask = [&](Taker& t) { t.next_s = taken_next(t) > 0 ? time_s(t, next_share(t)) : inf; };
  for (Taker& t : takers) ask(t);
  for (int left = samples; left > 0;) {
    if (portion > left) {
      portion = left;
      for (Taker& t : takers) ask(t);
    }
    Taker* best = &takers.front();
    for (Taker& t : takers) {
      if (t.next_s < best->next_s || (t.next_s == best->next_s && next_share(t) < next_share(*best))) best = &t;
    }
    if (best->next_s == inf) return false;
    const int share = next_share(*best), taken = taken_next(*best);
    best->taken += taken;
    left -= taken;
    if (taken_next(*best) <= 0 || next_share(*best) != share) ask(*best);
  }
  return true;
}

// Shares of a microbatch for the devices of a replica group.

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
