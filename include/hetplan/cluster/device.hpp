// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Devices: memory, compute, power and budgets.

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/precision.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Power draw: idle, active and in work that memory bounds [W], and energy per byte sent or received [J/B].
struct power_profile {
  watts idle = {};
  watts active = {};
  joules_per_byte send = {};
  joules_per_byte receive = {};
  std::optional<watts> memory = {};  ///< while memory is the limit of the work; default: active

  /// Does memory-bound work draw another power than the rest?
  [[nodiscard]] bool tells_memory() const { return memory && *memory != active; }

  friend bool operator==(const power_profile&, const power_profile&) = default;
};

/// Attained share of a peak, in (0, 1]: one for all weight formats, or by format.
struct attained_share {
  static constexpr std::string_view other = "other";  ///< in `by_format`: the formats that are not listed, and models that name none

  double of_all = 1;  ///< without `by_format`
  std::vector<std::pair<std::string, double>> by_format = {};

  attained_share(double share = 1) : of_all(share) {}
  explicit attained_share(std::vector<std::pair<std::string, double>> shares) : by_format(std::move(shares)) {}

  /// Returns the share for a weight format, else that of other formats; null if there is neither.
  [[nodiscard]] const double* find(std::string_view format) const;

  friend bool operator==(const attained_share&, const attained_share&) = default;
};

/// Memory below a device's own, such as RAM or a disk, where a plan may put weights. Each call of a layer reads them from there.
/// Source  semantics, section 3.
struct memory_tier {
  std::string name;
  bytes memory = {};
  bytes_per_second bandwidth = {};  ///< of the device's reads
  std::string resource = "";        ///< of the network: reads share it with those of other devices and with transfers; empty: none
  resource_id shared = {};          ///< set by the cluster: the id of `resource`, invalid if there is none

  friend bool operator==(const memory_tier&, const memory_tier&) = default;
};

/// Device. `compute` and `memory_bandwidth` are per accelerator, `memory` and `power` per device. Budgets may be below
/// the device's capacities; planners keep them, the simulator reports against them.
struct device {
  device_id id = {};  ///< set by the cluster
  std::string name;
  std::string kind = "";  ///< key of profiles; default: name
  bytes memory = {};
  std::optional<bytes> memory_budget = {};  ///< default: memory
  flops_per_second compute = {};            ///< peak; 0: unknown, every layer needs a profile for this kind
  std::vector<std::pair<precision, flops_per_second>> compute_by_precision = {};  ///< peaks; empty: `compute` in any precision
  bytes_per_second memory_bandwidth{std::numeric_limits<double>::infinity()};
  attained_share efficiency = 1;         ///< of compute
  attained_share memory_efficiency = 1;  ///< of memory_bandwidth
  double cache_efficiency = 1;           ///< of the attained bandwidth, where a key/value cache is read and written
  double half_batch = 0;                 ///< batch (samples) at which half of the peak rate is reached; 0: linear
  double half_rows = 0;                  ///< the same in rows (tokens of all samples); a device has one of the two
  seconds launch = {};                   ///< fixed cost of a kernel, of which a layer has layer::calls
  seconds overhead = {};                 ///< fixed cost of each task: a pass of a stage, forward or backward
  seconds send_overhead = {};            ///< fixed cost of sending to another device, which the sender's task takes longer
  bytes memory_overhead = {};            ///< held for the runtime itself, e.g. a CUDA context
  int accelerators = 1;
  std::optional<bytes_per_second> interconnect = {};  ///< between accelerators; required for tensor parallelism
  power_profile power = {};
  std::optional<joules> energy_budget = {};  ///< per iteration
  double max_busy = 1;                       ///< limit of the busy share
  std::vector<memory_tier> tiers = {};       ///< below its memory; unique names

  /// Returns the tier of that name, or null.
  [[nodiscard]] const memory_tier* find_tier(std::string_view of_name) const;
  [[nodiscard]] flops_per_second total_compute() const { return compute * accelerators; }
  /// Returns the peak in a precision, or in the nearest that may stand in for it (any_substitute). Throws invalid_input if there is none.
  [[nodiscard]] flops_per_second compute_in(hetplan::precision p) const;
  /// Does it know a peak in this precision?
  [[nodiscard]] bool computes_in(hetplan::precision p) const;
  [[nodiscard]] bytes usable_memory() const { return memory_budget.value_or(memory); }
  /// Returns what the runtime leaves of it to a plan's layers.
  [[nodiscard]] bytes memory_for_layers() const { return usable_memory() - memory_overhead; }

  friend bool operator==(const device&, const device&) = default;
};

/// Returns one of a device's shares for a weight format. Throws invalid_input that names the device and the field if it has none.
[[nodiscard]] double share_for(const attained_share& s, std::string_view format, const device& d, std::string_view field);

/// Throws invalid_input that names the device, the field, its value and the values expected.
void check_device(const device& d);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/device.ipp>
#endif
