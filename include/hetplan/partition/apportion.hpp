// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Bottleneck-minimal cuts of a layer sequence, and shares of a microbatch for classes of equal devices.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/layer_sequence.hpp>

namespace hetplan::partition {

/// Returns the positions where stages may begin: all in models of up to 512 layers; in larger ones those whose boundary carries no more
/// bytes than its neighbours, the natural places to cut.
///
/// @param cut_bytes  by layer: bytes that cross the boundary before it.
[[nodiscard]] inline std::vector<std::size_t> cut_positions(const std::vector<double>& cut_bytes) {
  std::vector<std::size_t> positions(cut_bytes.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  if (positions.size() <= 512) return positions;
  positions = light_boundaries(cut_bytes);
  positions.insert(positions.begin(), 0);
  return positions;
}

/// A cut into stages: stage i holds [first[i], first[i+1]) of the sequence, the last stage the rest, on device[i].
struct chain_cut {
  double bottleneck = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> first;
  std::vector<std::size_t> device;

  [[nodiscard]] bool exists() const { return !first.empty(); }
};

namespace detail {
/// Best first stage of a suffix: the suffix's bottleneck, and position and device of the next stage.
struct chain_choice {
  double bottleneck = std::numeric_limits<double>::infinity();
  std::uint32_t next_position = 0, next_device = 0;
};
}  // namespace detail

/// Returns the best cut for each number of stages: the largest stage or cut cost is minimal, exactly.
///
/// @param positions  allowed first layers of stages, ascending, the first 0; the sequence ends at `end`.
/// @param devices    number of devices. Stages use them in order; devices may be skipped.
/// @param stage_cost (first, last, device, following stages) -> cost, infinite if the stage does not fit; non-decreasing in `last`.
/// @param cut_cost   (position, device before, device behind) -> cost of the boundary.
/// @return           by index q - 1: the best cut into q stages, q = 1 ... max_stages.
/// Complexity        O(Q N^2 P^2) for Q stages, N devices, P positions; stages that reach the best known bottleneck are pruned.
/// Determinism       ties: the earlier cut, then the earlier device.
/// Related           adapt::cut_in_proportion fixes each stage's devices, which saves a state and allows thousands of items; least_overflow
///                   runs over states of a device_space. One engine for all three would be longer than the three.
/// Source            PipeDream's partitioning recurrence, on unequal devices. Deviation: from the sinks, because the memory of a stage
///                   depends on the number of following stages.
template <std::invocable<std::size_t, std::size_t, std::size_t, int> StageCost,
          std::invocable<std::size_t, std::size_t, std::size_t> CutCost>
[[nodiscard]] std::vector<chain_cut> bottleneck_chain(const std::vector<std::size_t>& positions, std::size_t end, std::size_t devices,
                                                      int max_stages, StageCost&& stage_cost, CutCost&& cut_cost) {
  using detail::chain_choice;
  const std::size_t count = positions.size();
  const auto stages = static_cast<std::size_t>(std::max(1, std::min<int>(max_stages, static_cast<int>(std::min(devices, count)))));
  // cell(q, d, p): best cut of the sequence from positions[p] on into q stages, the first one on device d.
  std::vector<chain_choice> cells(stages * devices * count);
  const auto cell = [&](std::size_t q, std::size_t d, std::size_t p) -> chain_choice& {
    return cells[((q - 1) * devices + d) * count + p];
  };
  std::vector<double> least_rest;  // by d, then position: the least bottleneck of one stage fewer on devices behind d
  for (std::size_t q = 1; q <= stages; ++q) {
    least_rest.assign((devices + 1) * count, std::numeric_limits<double>::infinity());
    for (std::size_t d = devices - 1; q > 1 && d-- > 0;) {
      for (std::size_t p = 0; p < count; ++p)
        least_rest[d * count + p] = std::min(least_rest[(d + 1) * count + p], cell(q - 1, d + 1, p).bottleneck);
    }
    for (std::size_t d = 0; d + q <= devices; ++d) {
      for (std::size_t p = 0; p < count; ++p) {
        chain_choice& best = cell(q, d, p);
        if (q == 1) {
          best.bottleneck = stage_cost(positions[p], end, d, 0);
          continue;
        }
        // Cuts that are no better than the one of the position before need no look.
        double known = std::numeric_limits<double>::infinity();
        if (const chain_choice* before = p > 0 ? &cell(q, d, p - 1) : nullptr; before && before->next_position > p) {
          const std::size_t n = before->next_position, e = before->next_device;
          known = std::max({stage_cost(positions[p], positions[n], d, static_cast<int>(q) - 1), cell(q - 1, e, n).bottleneck,
                            cut_cost(positions[n], d, e)});
        }
        for (std::size_t n = p + 1; n + q - 1 <= count; ++n) {
          if (const double rest = least_rest[d * count + n]; rest > known || rest >= best.bottleneck) continue;
          const double mine = stage_cost(positions[p], positions[n], d, static_cast<int>(q) - 1);
          if (mine >= best.bottleneck) break;
          for (std::size_t e = d + 1; e + q - 1 <= devices; ++e) {
            const double rest = cell(q - 1, e, n).bottleneck;
            if (rest >= best.bottleneck) continue;
            const double all = std::max({mine, rest, cut_cost(positions[n], d, e)});
            if (all < best.bottleneck) best = {all, static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(e)};
          }
        }
      }
    }
  }
  std::vector<chain_cut> cuts(stages);
  for (std::size_t q = 1; q <= stages; ++q) {
    std::size_t d = 0;
    for (std::size_t e = 1; e + q <= devices; ++e) {
      if (cell(q, e, 0).bottleneck < cell(q, d, 0).bottleneck) d = e;
    }
    chain_cut& cut = cuts[q - 1];
    cut.bottleneck = cell(q, d, 0).bottleneck;
    if (cut.bottleneck == std::numeric_limits<double>::infinity()) continue;
    for (std::size_t left = q, p = 0; left > 0; --left) {
      cut.first.push_back(positions[p]);
      cut.device.push_back(d);
      const chain_choice& c = cell(left, d, p);
      p = c.next_position;
      d = c.next_device;
    }
  }
  return cuts;
}

/// A class of equal devices that receive samples evenly.
struct sample_taker {
  int devices = 1;
  int cap = 0;         ///< largest share of one device that fits into its memory
  int taken = 0;       ///< samples of all devices together
  int next_share = 0;  ///< share of the next device to receive a portion, that portion included
  double next_s = 0;   ///< time of that share

  [[nodiscard]] int largest_share() const { return (taken + devices - 1) / devices; }
  /// Returns the share of the i-th device; a remainder goes to the first devices, one sample each.
  [[nodiscard]] int share(int i) const { return taken / devices + (i < taken % devices ? 1 : 0); }
};

/// Approximate maximum number of portions in which samples are assigned.
inline constexpr int most_portions = 256;

/// Assigns samples one by one, each to the device with memory left that finishes it first.
///
/// If times do not fall as the share grows, the largest time is minimal over all integer shares within the caps (exchange argument: each
/// step takes the smallest possible next maximum). More than most_portions samples are assigned in equal portions, a taker's last one as
/// large as its room; the result is then within one portion of that minimum.
///
/// @param samples   number of samples to add to what the takers have.
/// @param takers    not empty; receive the samples. A derived type adds what identifies the taker.
/// @param time_s    (taker, share >= 1) -> seconds; finite, non-decreasing in the share. Called once for each share that a taker's devices
///                  reach, and for the next one.
/// @return          false if the caps hold fewer samples; the takers then have those that fit.
/// Complexity       O(min(samples, most_portions) x takers).
/// Determinism      ties: the smaller share, so that equal devices share evenly, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: the same optimum, found greedily.
template <std::derived_from<sample_taker> Taker, std::invocable<const Taker&, int> Time>
[[nodiscard]] bool apportion(int samples, std::vector<Taker>& takers, const Time& time_s) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  int portion = samples > most_portions ? (samples - 1) / most_portions + 1 : 1;
  const auto taken_next = [&](const Taker& t) {
    return static_cast<int>(std::min<long long>(portion, static_cast<long long>(t.cap) * t.devices - t.taken));
  };
  const auto next_share = [&](const Taker& t) { return (t.taken + taken_next(t) - 1) / t.devices + 1; };
  const auto ask = [&](Taker& t) {
    t.next_share = next_share(t);
    t.next_s = taken_next(t) > 0 ? time_s(t, t.next_share) : inf;
  };
  for (Taker& t : takers) ask(t);
  for (int left = samples; left > 0;) {
    if (portion > left) {
      portion = left;
      for (Taker& t : takers) ask(t);
    }
    Taker* best = &takers.front();
    for (Taker& t : takers) {
      if (t.next_s < best->next_s || (t.next_s == best->next_s && t.next_share < best->next_share)) best = &t;
    }
    if (best->next_s == inf) return false;
    const int taken = taken_next(*best);
    best->taken += taken;
    left -= taken;
    if (taken_next(*best) <= 0 || next_share(*best) != best->next_share) ask(*best);
  }
  return true;
}

/// Returns the shares of the samples on devices that all differ: apportion with one device per taker.
///
/// @param caps      by device: largest number of samples that fits into its memory.
/// @param time_s    (device index, share >= 1) -> seconds; finite, non-decreasing in the share.
/// @return          shares by device (0: unused), or nothing if the caps hold fewer samples.
/// Complexity       O(samples x devices).
/// Throws           invalid_input (no device).
/// Determinism      ties: the smaller share, then the smaller index.
/// Source           Asteroid, Algorithm 1, eq. 7: the same optimum, found greedily (apportion).
template <std::invocable<std::size_t, int> Time>
[[nodiscard]] std::optional<std::vector<int>> allocate(int samples, const std::vector<int>& caps, Time&& time_s) {
  if (caps.empty()) throw invalid_input("allocate: no devices for " + std::to_string(samples) + " samples; expected at least one");
  struct one_device : sample_taker {
    std::size_t index;
  };
  std::vector<one_device> devices;
  // Caps at `samples`, so that time_s is called for no larger share.
  for (std::size_t d = 0; d < caps.size(); ++d) devices.push_back({{.cap = std::min(caps[d], samples)}, d});
  if (!apportion(samples, devices, [&](const one_device& d, int share) { return time_s(d.index, share); })) return std::nullopt;
  std::vector<int> shares;
  for (const one_device& d : devices) shares.push_back(d.taken);
  return shares;
}

}  // namespace hetplan::partition
