// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/without.hpp>

#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace hetplan {

namespace detail {

/// Everybody is joined to everybody at no cost.
struct free_routes {
  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {}; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return route{}; }
};

}  // namespace detail

HETPLAN_INLINE cluster without_memory_limits(const cluster& c) {
  std::vector<device> roomy(c.devices().begin(), c.devices().end());
  for (device& d : roomy) {
    d.memory = bytes(1e18);
    d.memory_budget.reset();
  }
  return c.with_devices(std::move(roomy));
}

HETPLAN_INLINE cluster without_network_costs(const cluster& c) {
  return {c.name(), {c.devices().begin(), c.devices().end()}, detail::free_routes{}};
}

}  // namespace hetplan
