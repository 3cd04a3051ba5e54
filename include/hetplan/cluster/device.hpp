// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where work runs: one device with its memory, compute, power and budgets.

#include <limits>
#include <optional>
#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/core/id.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Power draw: idle and active [W], and what a byte sent or received adds [J/B].
struct power_profile {
  watts idle = {};
  watts active = {};
  joules_per_byte send = {};
  joules_per_byte receive = {};

  friend bool operator==(const power_profile&, const power_profile&) = default;
};

/// A device. `compute` and `memory_bandwidth` are per accelerator, `memory` and `power` per device.
/// Budgets may lie below what the device has; planners keep them, the simulator reports against them.
struct device {
  device_id id = {};  ///< set by the cluster
  std::string name;
  std::string kind = "";  ///< = name where empty; profiles are looked up by kind
  bytes memory = {};
  std::optional<bytes> memory_budget = {};  ///< = memory
  flops_per_second compute = {};            ///< 0: unknown, every layer needs a profile for this kind
  bytes_per_second memory_bandwidth{std::numeric_limits<double>::infinity()};
  double half_batch = 0;  ///< batch at which half of the peak rate is reached; 0 = linear
  seconds launch = {};    ///< fixed cost of one call of one layer
  int accelerators = 1;
  std::optional<bytes_per_second> interconnect = {};  ///< between accelerators; tensor parallelism needs it
  power_profile power = {};
  std::optional<joules> energy_budget = {};  ///< per iteration
  double max_busy = 1;                       ///< cap on the busy share

  /// Of all its accelerators.
  [[nodiscard]] flops_per_second total_compute() const { return compute * accelerators; }
  /// What a plan may use of the memory.
  [[nodiscard]] bytes usable_memory() const { return memory_budget.value_or(memory); }

  friend bool operator==(const device&, const device&) = default;
};

/// Throws invalid_input that names the device, the field, its value and what was expected.
inline void check_device(const device& d) {
  const auto require = [&](bool ok, const char* field, double given, const char* expected) {
    if (!ok) {
      throw invalid_input("device \"" + d.name + "\": " + field + " = " + to_text(given) + "; expected " + expected);
    }
  };
  const auto amount = [&](auto q, const char* field) { require(is_finite(q) && q.value() >= 0, field, q.value(), "a finite number >= 0"); };
  if (d.name.empty()) throw invalid_input("a device has an empty name");
  require(is_finite(d.memory) && d.memory.value() > 0, "memory", d.memory.value(), "bytes > 0");
  require(d.usable_memory().value() > 0 && d.usable_memory() <= d.memory, "memory_budget", d.usable_memory().value(),
          "bytes > 0 and at most the memory");
  amount(d.compute, "compute");
  require(d.memory_bandwidth.value() > 0, "memory_bandwidth", d.memory_bandwidth.value(), "a rate > 0");
  require(std::isfinite(d.half_batch) && d.half_batch >= 0, "half_batch", d.half_batch, "a finite number >= 0");
  amount(d.launch, "launch");
  require(d.accelerators >= 1, "accelerators", d.accelerators, "an integer >= 1");
  if (d.interconnect) {
    require(is_finite(*d.interconnect) && d.interconnect->value() > 0, "interconnect", d.interconnect->value(), "a rate > 0");
  }
  amount(d.power.idle, "power.idle");
  require(is_finite(d.power.active) && d.power.active >= d.power.idle, "power.active", d.power.active.value(), "watts >= idle");
  amount(d.power.send, "power.send");
  amount(d.power.receive, "power.receive");
  if (d.energy_budget) amount(*d.energy_budget, "energy_budget");
  require(d.max_busy > 0 && d.max_busy <= 1, "max_busy", d.max_busy, "a share in (0, 1]");
}

}  // namespace hetplan
