// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan costs, as the simulator judged it.

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// One device's part of an evaluation; `used` is false for devices that the plan leaves alone.
struct device_evaluation {
  bool used = false;
  joules energy = {};
  bytes peak_memory = {};
  seconds busy = {};
  seconds span = {};  ///< from the start of its first task to the end of its last

  friend bool operator==(const device_evaluation&, const device_evaluation&) = default;
};

/// The numbers of one simulated run and the bounds that certify it.
struct evaluation {
  seconds latency = {};                             ///< T, the last end
  std::optional<seconds> time_between_tokens = {};  ///< generation
  std::vector<device_evaluation> devices = {};      ///< by device id
  std::vector<bytes> resource_bytes = {};           ///< by resource id: payload * weight
  seconds bound = {};                               ///< no plan of this model, cluster, batch is faster; 0: none known
  double gap = 0;                                   ///< latency / bound - 1
  seconds schedule_bound = {};                      ///< no schedule of this plan is faster
  double schedule_gap = 0;
  seconds contention_bound = {};  ///< the same, tighter: transfers share resources; 0: not known
  seconds placement_bound = {};   ///< no schedule of single operators is faster (place/operator_schedule); 0: not known

  /// The longest span of tasks: what an iteration takes at least where the next one follows without a flush.
  [[nodiscard]] seconds period() const {
    seconds longest;
    for (const device_evaluation& d : devices) longest = d.span > longest ? d.span : longest;
    return longest;
  }
  /// What qoe.latency limits: T, or the time between tokens in generation.
  [[nodiscard]] seconds response() const { return time_between_tokens.value_or(latency); }
  [[nodiscard]] joules energy() const {
    joules total;
    for (const device_evaluation& d : devices) total += d.energy;
    return total;
  }
  [[nodiscard]] bytes peak_memory() const {
    bytes most;
    for (const device_evaluation& d : devices) most = d.peak_memory > most ? d.peak_memory : most;
    return most;
  }

  friend bool operator==(const evaluation&, const evaluation&) = default;
};

/// A gap as people read it: 0 where nothing but rounding is left of it.
[[nodiscard]] inline double readable_gap(double gap) { return std::abs(gap) <= 1e-9 ? 0 : gap; }

}  // namespace hetplan
