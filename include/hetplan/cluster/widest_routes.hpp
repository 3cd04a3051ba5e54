// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Routes over several hops, for networks in which not all devices are joined directly.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

namespace detail {

/// Direct routes of a network, and the widest paths over them for pairs without one.
class indirect_routes {
 public:
  indirect_routes(network direct, std::size_t devices);

  [[nodiscard]] std::optional<route> operator()(device_id from, device_id to) const;

 private:
  struct edges;  ///< direct routes as a Boost graph
  using paths = std::vector<std::vector<device_id>>;

  /// Returns for each device without a route from `from` the devices on the path to it after `from`; empty if there is no path.
  [[nodiscard]] paths paths_from(device_id from) const;

  network direct_;
  std::size_t devices_;
  std::shared_ptr<const edges> edges_;
  mutable device_id last_from_ = {};  ///< source of the paths in last_; a network asks for one source after the other
  mutable paths last_;
};

}  // namespace detail

/// Network model with a route for every pair that a path joins. A pair with a direct route keeps it. Any other pair takes the path over
/// direct routes with the widest bottleneck, the smallest peak bandwidth on the path. Latencies add up; the path uses all resources of
/// its routes, repeated ones with the sum of their weights. All hops carry at once: devices in between store nothing and do no work.
///
///     const cluster c("c", devices, widest_routes{links});   // links: a route_table of the existing wires
///
/// Complexity   N^2 calls of the inner model; O(B (N + E) log N) per device with pairs to join: E direct routes, B bottlenecks.
/// Throws       invalid_model if the inner model breaks its rules.
/// Determinism  equally wide paths: fewer hops, then less latency, then smaller device ids, compared from the destination.
/// Source       Moirai, sections III-A and III-C, Fig 3.
/// Deviations   paths are compared as if a medium shared by two hops were as wide for each as alone; the resulting route uses it twice,
///              so its peak bandwidth may be below the path's bottleneck, and contention is counted wherever routes meet.
template <network_model Inner>
struct widest_routes {
  Inner inner;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const { return inner.resources(devices); }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    return route_finder(devices)(from, to);
  }
  /// Returns the routes of all pairs, from one evaluation of the inner model.
  [[nodiscard]] auto route_finder(std::span<const device> devices) const {
    return detail::indirect_routes(network(inner, devices), devices.size());
  }
};
template <class Inner>
widest_routes(Inner) -> widest_routes<Inner>;

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/widest_routes.ipp>
#endif
