// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/max_min.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE void max_min::fill(std::span<const std::uint32_t> tier, std::vector<fluid_flow>& flows,
                                  std::vector<fluid_resource>& resources) {
  limits_.clear();
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
    limits_.push_back({bottleneck, level});
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

HETPLAN_INLINE void max_min::fill_alone(fluid_flow& x, std::vector<fluid_resource>& resources) {
  limit least{static_cast<std::uint32_t>(x.via.front().resource.index()), never};
  for (const resource_use& u : x.via) {
    const fluid_resource& s = resources[u.resource.index()];
    if (s.left < least.rate * u.weight) least = {static_cast<std::uint32_t>(u.resource.index()), s.left / u.weight};
  }
  least.rate = std::max(0.0, least.rate);
  limits_.push_back(least);
  x.next_rate = least.rate;
  for (const resource_use& u : x.via) {
    fluid_resource& s = resources[u.resource.index()];
    s.left -= u.weight * x.next_rate;
    if (s.left < saturated * s.capacity) s.left = 0;
  }
}

}  // namespace HETPLAN_NAMESPACE::detail
