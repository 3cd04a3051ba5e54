// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Max-min fair rates of the flows of a tier: progressive filling.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan::detail {

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
  bool dirty = false, visited = false;
};

/// Fills what is left of resources with the rates of flows, all of one tier. Keeps its scratch between calls.
class max_min {
 public:
  static constexpr double unset = -1;

  /// Progressive filling: the resource with the smallest fair share fixes its flows; repeat.
  void fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows, std::vector<fluid_resource>& resources) {
    if (tier.size() == 1) return fill_alone(flows[tier.front()], resources);
    open_.clear();
    for (const std::uint32_t f : tier) {
      flows[f].next_rate = unset;
      for (const resource_use& u : flows[f].via) {
        fluid_resource& s = resources[u.resource.index()];
        if (s.pending++ == 0) {
          open_.push_back(static_cast<std::uint32_t>(u.resource.index()));
          s.weight = 0;
        }
        s.weight += u.weight;
      }
    }
    double level = 0;
    for (std::size_t unfixed = tier.size(); unfixed > 0;) {
      double share = never;
      std::uint32_t bottleneck = open_.front();
      std::size_t kept = 0;
      for (const std::uint32_t r : open_) {
        const fluid_resource& s = resources[r];
        if (s.pending == 0) continue;
        open_[kept++] = r;
        if (s.left < share * s.weight) {
          share = s.left / s.weight;
          bottleneck = r;
        }
      }
      open_.resize(kept);
      level = std::max(level, share);  // rounding may not lower it
      for (const std::uint32_t f : resources[bottleneck].flows) {
        fluid_flow& x = flows[f];
        if (x.next_rate != unset) continue;
        x.next_rate = level;
        --unfixed;
        for (const resource_use& u : x.via) {
          fluid_resource& s = resources[u.resource.index()];
          --s.pending;
          s.weight -= u.weight;
          s.left -= u.weight * level;
          if (s.left < saturated * s.capacity) s.left = 0;
        }
      }
    }
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  static constexpr double saturated = 1e-12;  ///< of a capacity: rounding, not bandwidth, for the tiers below

  /// A flow that has its tier to itself takes what is left on its route.
  void fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources) {
    double share = never;
    for (const resource_use& u : x.via) {
      const fluid_resource& s = resources[u.resource.index()];
      if (s.left < share * u.weight) share = s.left / u.weight;
    }
    x.next_rate = std::max(0.0, share);
    for (const resource_use& u : x.via) {
      fluid_resource& s = resources[u.resource.index()];
      s.left -= u.weight * x.next_rate;
      if (s.left < saturated * s.capacity) s.left = 0;
    }
  }

  std::vector<std::uint32_t> open_;
};

}  // namespace hetplan::detail
