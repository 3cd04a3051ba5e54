// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the environment is like at one time: who is there, how fast, on which network.

#include <cmath>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/simulate/simulator_options.hpp>

namespace hetplan::adapt {

/// The state of a cluster between two events. By device and by resource, as the cluster numbers them.
struct conditions {
  std::vector<char> present;
  std::vector<double> speed;               ///< factor on each device's speed
  std::vector<bytes_per_second> capacity;  ///< of each resource

  [[nodiscard]] bool works(device_id d) const { return present[d.index()] != 0 && speed[d.index()] > 0; }
  friend bool operator==(const conditions&, const conditions&) = default;
};

/// The conditions that a cluster describes.
[[nodiscard]] conditions nominal(const cluster& c);

/// What an event changes; traffic and targets change no condition.
void apply(conditions& now, const event& e);

/// The largest relative change of a speed or a capacity, 1 where a device came or went: |new / old - 1|, and infinite
/// where something rises from 0.
///
/// Source  Dora, section 5: fluctuations within 10 % need no new partition.
[[nodiscard]] double change(const conditions& before, const conditions& now);

/// Values are rounded to usual * rounding_step^k: the nearest is at most 10 % away.
inline constexpr double rounding_step = 1.21;
/// How many steps a ratio is.
[[nodiscard]] inline double rounding_steps(double ratio) { return std::log(ratio) / std::log(rounding_step); }
[[nodiscard]] double rounded_value(double usual, long k);

/// The conditions that stand for all that are alike: every speed and capacity at the nearest of the values 1.21^k times the
/// cluster's own. Rounding twice changes nothing.
///
/// Source  ours; Dora, section 5, asks for no new partition within 10 %.
[[nodiscard]] conditions rounded(conditions now, const cluster& c);

/// What the simulator is told of conditions that hold from the start; those of the cluster itself need no word.
///
/// Source  semantics, section 10.
[[nodiscard]] simulator_options from_the_start(const conditions& now, const cluster& c);

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/conditions.ipp>
#endif
