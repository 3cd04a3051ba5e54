// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network models that ship: five topologies, the explicit table of resources and routes, and routes over several hops.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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

enum class duplex { full, half };

/// One medium shared by all devices (Wi-Fi); every route uses it once. Resource "shared".
struct shared_medium {
  bytes_per_second capacity;
  seconds latency = {};

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {{"shared", capacity}}; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const;
};

/// A wire between every two devices. Resources "A->B", or "A--B" if half duplex.
struct mesh {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const;
};

/// Wires between neighbours in device order, closed to a ring (two devices: one wire). Routes go the shorter way round, in device order
/// on a tie; latency per hop. Resources "A->B", or "A--B" if half duplex.
struct ring {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const;

 private:
  static std::size_t wire_count(std::size_t n) { return n < 2 ? 0 : n == 2 ? 1 : n; }
};

/// Uplink and downlink of every device to one switch; latency once. Resources "A.up", "A.down", or "A.link" if half duplex.
struct star {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};

/// Groups (a LAN each) joined by a wide-area network. A route inside a group uses its shared resource. A route between groups A and B
/// uses A's resource, "A.up", "B.down" and B's resource ("A.link", "B.link" if half duplex), with the latencies of A, the topology and B
/// added. Every device is in exactly one group.
struct hierarchical {
  struct group {
    std::string name;
    std::vector<std::string> devices;
    bytes_per_second capacity;
    seconds latency = {};
  };
  bytes_per_second capacity;  ///< of each group's uplink and downlink
  seconds latency = {};       ///< between groups
  duplex wires = duplex::full;
  std::vector<group> groups;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const;
  /// Returns the routes of all pairs, with one look-up of the group per device.
  [[nodiscard]] auto route_finder(std::span<const device> devices) const {
    const auto known = groups_by_device_name();
    std::vector<std::size_t> of_device;
    for (const device& d : devices) {
      const auto it = known.find(d.name);
      of_device.push_back(it == known.end() ? group_of(d) : it->second.front());
    }
    return [this, of_device = std::move(of_device)](device_id from, device_id to) {
      return between(of_device[from.index()], of_device[to.index()]);
    };
  }

 private:
  [[nodiscard]] std::optional<route> between(std::size_t a, std::size_t b) const;
  /// Returns for each device the groups that name it, ascending.
  [[nodiscard]] std::unordered_map<std::string_view, std::vector<std::size_t>> groups_by_device_name() const;
  [[nodiscard]] std::size_t group_of(const device& d) const;
  void check(std::span<const device> devices) const;
};

/// Explicit resources and routes. An end of a rule may be "*" (any device). Of several rules that match a pair, one that names both ends
/// wins over one end, over none; on a tie the first listed.
struct route_table {
  struct rule {
    std::string from;
    std::string to;
    route path;
  };
  std::vector<resource> listed;
  std::vector<rule> rules;

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return listed; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const;
};

static_assert(check_network_model<shared_medium>() && check_network_model<mesh>() && check_network_model<ring>() &&
              check_network_model<star>() && check_network_model<hierarchical>() && check_network_model<route_table>());

}  // namespace hetplan

#ifndef HETPLAN_COMPILED
#include <hetplan/cluster/topology.ipp>
#endif
