// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Views for planners that do not look at something: memory, or what the network takes.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

namespace hetplan {

namespace detail {

/// Everybody is joined to everybody at no cost.
struct free_routes {
  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {}; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const { return route{}; }
};

}  // namespace detail

/// What a planner sees that does not ask whether a plan fits: every device has more memory than any plan takes (1 EB).
///
/// Plans of the view are plans of the cluster, but may not fit there.
/// Source  PipeDream, Dapple and HetPipe as Asteroid, section 5.2, describes them.
[[nodiscard]] inline cluster without_memory_limits(const cluster& c) {
  std::vector<device> roomy(c.devices().begin(), c.devices().end());
  for (device& d : roomy) {
    d.memory = bytes(1e18);
    d.memory_budget.reset();
  }
  return c.with_devices(std::move(roomy));
}

/// What a planner sees that balances work and overlooks what moves: transfers take no time at all.
///
/// Plans of the view are plans of the cluster where all pairs of devices are joined.
/// Source  GPipe's partition as Asteroid, section 5.5, describes it.
[[nodiscard]] inline cluster without_network_costs(const cluster& c) {
  return {c.name(), {c.devices().begin(), c.devices().end()}, detail::free_routes{}};
}

}  // namespace hetplan
