// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network models that ship: five topologies, and the explicit table of resources and routes.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/keyed.hpp>

namespace hetplan {

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
      const std::vector<std::size_t>* named = known.find(parts_of(d.name));
      of_device.push_back(named == nullptr ? group_of(d) : named->front());
    }
    return [this, of_device = std::move(of_device)](device_id from, device_id to) {
      return between(of_device[from.index()], of_device[to.index()]);
    };
  }

 private:
  [[nodiscard]] std::optional<route> between(std::size_t a, std::size_t b) const;
  /// Returns for each device the groups that name it, ascending.
  [[nodiscard]] keyed<std::vector<std::size_t>> groups_by_device_name() const;
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

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/topology.ipp>
#endif
