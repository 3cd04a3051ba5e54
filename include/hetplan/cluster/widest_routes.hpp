// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A network where devices that are not joined directly talk through others.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

namespace detail {

/// Routes of a network, and the widest paths over them where there is none.
class indirect_routes {
 public:
  indirect_routes(network direct, std::size_t devices);

  [[nodiscard]] std::optional<route> operator()(device_id from, device_id to) const;

 private:
  struct edges;  ///< the direct routes as a graph of Boost's
  using paths = std::vector<std::vector<device_id>>;

  /// The devices after `from` on the way to each device that it has no route to; empty where none leads there.
  [[nodiscard]] paths paths_from(device_id from) const;

  network direct_;
  std::size_t devices_;
  std::shared_ptr<const edges> edges_;
  mutable device_id last_from_ = {};  ///< whose paths these are; a network asks for one source after the other
  mutable paths last_;
};

}  // namespace detail

/// A network model with a route for every pair that a path joins. A pair with a direct route keeps it. Any other takes the path over
/// direct routes with the widest bottleneck, which is the smallest of the peak bandwidths on it: latencies add up, and the path takes all
/// resources of its routes, those that recur with the sum of their weights. All hops carry at once, so nothing is stored on the way, and
/// the devices in between do no work.
///
///     const cluster c("c", devices, widest_routes{links});   // links: a route_table with the wires that there are
///
/// Complexity   N^2 questions to the inner model; per device with pairs to join O(B (N + E) log N) for E direct routes and B different
///              bottlenecks.
/// Throws       invalid_model where the inner model breaks its rules.
/// Determinism  equally wide paths: fewer hops, then less latency, then the smaller device id next to the destination, then before it,
///              and so on.
/// Source       Moirai, sections III-A and III-C, Fig 3.
/// Deviations   a medium that two hops share is as wide for each as if it were alone when paths are compared; the route that results
///              takes it twice, so its peak bandwidth may be below the path's bottleneck, and contention is seen wherever routes meet.
template <network_model Inner>
struct widest_routes {
  Inner inner;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const { return inner.resources(devices); }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    return route_finder(devices)(from, to);
  }
  /// For all pairs: asks the inner model once.
  [[nodiscard]] auto route_finder(std::span<const device> devices) const {
    return detail::indirect_routes(network(inner, devices), devices.size());
  }
};
template <class Inner>
widest_routes(Inner) -> widest_routes<Inner>;

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/widest_routes.ipp>
#endif
