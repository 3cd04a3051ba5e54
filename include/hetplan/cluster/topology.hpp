// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network models that ship: five topologies and the explicit table of resources and routes.

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

// A network where devices that are not joined directly talk through others.

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

enum class duplex { full, half };

/// One medium that everybody shares (Wi-Fi); every route takes it once. Resource "shared".
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

/// Wires between neighbours in device order, closed to a ring (two devices: one wire). The shorter way
/// round, in device order first on a tie; latency per hop. Resources "A->B", or "A--B" if half duplex.
struct ring {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const;

 private:
  static std::size_t wire_count(std::size_t n) { return n < 2 ? 0 : n == 2 ? 1 : n; }
};

/// Every device has an uplink and a downlink to one switch. Resources "A.up", "A.down", or "A.link" if
/// half duplex; latency once.
struct star {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const;
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const;
};

/// Groups (a LAN each) joined by a wide-area network. Inside a group its shared resource; between
/// groups A's resource, "A.up", "B.down", B's resource ("A.link", "B.link" if half duplex), latency of
/// A + the topology's + of B. Every device is in exactly one group.
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
  /// For all pairs: looks each device's group up once.
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
  /// The groups that name a device, ascending.
  [[nodiscard]] std::unordered_map<std::string_view, std::vector<std::size_t>> groups_by_device_name() const;
  [[nodiscard]] std::size_t group_of(const device& d) const;
  void check(std::span<const device> devices) const;
};

/// Resources and routes one by one. A rule's end may be "*" (any device); of several rules that match a
/// pair, the one that names both ends wins over one end, over none; the first listed on a tie.
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

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/topology.ipp>
#endif
