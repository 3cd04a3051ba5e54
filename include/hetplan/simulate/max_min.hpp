// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Max-min fair rates of the flows of a tier: progressive filling.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace HETPLAN_NAMESPACE::detail {

/// A flow, and the rate that a filling gives it.
struct fluid_flow {
  std::span<const resource_use> via;
  double remaining = 0, rate = 0, since = 0;
  double next_rate = -1;  ///< while filling: max_min::unset, collected, or fixed
  int tier = 0;
  std::uint32_t tag = 0, slot = 0;
  std::vector<std::uint32_t> at;  ///< by resource of its route: where it stands among the resource's flows
};
/// A resource with the flows that cross it.
struct fluid_resource {
  double capacity = 0;
  double total = 0;             ///< weight of all flows; exact where weights are whole numbers
  double left = 0, weight = 0;  ///< while filling: capacity not given out, weight of flows not fixed
  std::size_t pending = 0;      ///< while filling: flows not fixed
  std::vector<std::uint32_t> flows;
  std::uint32_t place = 0;  ///< among the resources with flows
  bool dirty = false, visited = false;
};

/// A resource that limits flows, and the rate that it leaves to them.
struct limit {
  std::uint32_t resource;
  double rate;
};

/// Fills what is left of resources with the rates of flows, all of one tier. Keeps its scratch between calls.
class max_min {
 public:
  static constexpr double unset = -1;

  /// Progressive filling: the resource with the smallest fair share fixes its flows; repeat.
  void fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows, std::vector<fluid_resource>& resources);

  /// The resources that limited the flows of the last filling.
  [[nodiscard]] std::span<const limit> limits() const { return limits_; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double saturated = 1e-12;  ///< of a capacity: rounding, not bandwidth, for the tiers below

  /// A flow that has its tier to itself takes what is left on its route.
  void fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources);

  std::vector<std::uint32_t> open_;
  std::vector<limit> limits_;
};

}  // namespace HETPLAN_NAMESPACE::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/max_min.ipp>
#endif
