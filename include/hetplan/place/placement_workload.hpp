// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Operators to be placed on like accelerators and like CPUs, and what a placement costs each device.

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>

namespace hetplan::place {

/// One operator; times are per sample.
struct placed_operator {
  std::string name = {};
  seconds accelerator_time = {};
  seconds cpu_time = {};
  bytes size = {};             ///< memory that it takes on an accelerator
  seconds transfer = {};       ///< of its output between an accelerator and the memory of the CPUs
  bool on_accelerator = true;  ///< whether an accelerator can run it
  bool backward = false;
  std::optional<long long> color = {};  ///< operators of one color are on one device

  friend bool operator==(const placed_operator&, const placed_operator&) = default;
};

/// What runs, and on how many devices. Samples follow each other in a pipeline: the busiest device sets the pace.
struct placement_workload {
  std::vector<placed_operator> operators = {};
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< producer, reader
  int accelerators = 0;
  int cpus = 0;
  bytes accelerator_memory = bytes(std::numeric_limits<double>::infinity());

  friend bool operator==(const placement_workload&, const placement_workload&) = default;
};

/// Results have an entry per device.
inline constexpr int max_placement_devices = 65'536;

/// Throws  invalid_input: no operator, a time, size or memory that is negative or not finite (memory may be infinite), a number of
///         devices that is negative or above max_placement_devices, no device, an edge that leads nowhere, from a backward to a forward
///         operator, or closes a cycle.
void check_placement_workload(const placement_workload& w);

/// What each device has to do per sample: accelerators first, then CPUs.
///
/// An accelerator computes its operators, brings in every tensor that one of them reads and another device made, once however
/// many read it, and brings out every tensor that one of them made and another device reads, once however many devices read it.
/// A CPU computes: transfers are the accelerators'.
///
/// @param device  of each operator.
/// Complexity     O(operators + edges log edges).
/// Throws         invalid_input: not one device per operator, no such device.
/// Source         Tarnawski et al., NeurIPS 2020, computational model.
[[nodiscard]] std::vector<seconds> device_loads(const placement_workload& w, std::span<const std::size_t> device);

/// The first rule that a placement breaks, as a sentence: colors, what an accelerator can run, memory, and that the devices can be put
/// in an order in which forward edges never lead back. Nothing: it keeps all of them.
///
/// Throws  as device_loads.
[[nodiscard]] std::optional<std::string> find_broken_rule(const placement_workload& w, std::span<const std::size_t> device);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_workload.ipp>
#endif
