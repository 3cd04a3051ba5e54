// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices: memory, compute, power and budgets.

#include <limits>
#include <optional>
#include <string>

#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Power draw: idle and active [W], and energy per byte sent or received [J/B].
struct power_profile {
  watts idle = {};
  watts active = {};
  joules_per_byte send = {};
  joules_per_byte receive = {};

  friend bool operator==(const power_profile&, const power_profile&) = default;
};

/// Device. `compute` and `memory_bandwidth` are per accelerator, `memory` and `power` per device. Budgets may be below
/// the device's capacities; planners keep them, the simulator reports against them.
struct device {
  device_id id = {};  ///< set by the cluster
  std::string name;
  std::string kind = "";  ///< key of profiles; default: name
  bytes memory = {};
  std::optional<bytes> memory_budget = {};  ///< default: memory
  flops_per_second compute = {};            ///< 0: unknown, every layer needs a profile for this kind
  bytes_per_second memory_bandwidth{std::numeric_limits<double>::infinity()};
  double half_batch = 0;  ///< batch at which half of the peak rate is reached; 0: linear
  seconds launch = {};    ///< fixed cost of one call of one layer
  int accelerators = 1;
  std::optional<bytes_per_second> interconnect = {};  ///< between accelerators; required for tensor parallelism
  power_profile power = {};
  std::optional<joules> energy_budget = {};  ///< per iteration
  double max_busy = 1;                       ///< limit of the busy share

  [[nodiscard]] flops_per_second total_compute() const { return compute * accelerators; }
  [[nodiscard]] bytes usable_memory() const { return memory_budget.value_or(memory); }

  friend bool operator==(const device&, const device&) = default;
};

/// Throws invalid_input that names the device, the field, its value and the values expected.
void check_device(const device& d);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/device.ipp>
#endif
