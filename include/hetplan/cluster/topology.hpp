// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network models that ship: five topologies and the explicit table of resources and routes.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>

namespace hetplan {

enum class duplex { full, half };

/// One medium that everybody shares (Wi-Fi); every route takes it once. Resource "shared".
struct shared_medium {
  bytes_per_second capacity;
  seconds latency = {};

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return {{"shared", capacity}}; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id, device_id) const {
    return route{latency, {{resource_id(0), 1}}};
  }
};

/// A wire between every two devices. Resources "A->B", or "A--B" if half duplex.
struct mesh {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    std::vector<resource> all;
    all.reserve(devices.size() * devices.size() / (wires == duplex::half ? 2 : 1));
    for (const device& a : devices) {
      for (const device& b : devices) {
        if (a.id == b.id || (wires == duplex::half && a.id > b.id)) continue;
        all.push_back({a.name + (wires == duplex::half ? "--" : "->") + b.name, capacity});
      }
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    const std::size_t n = devices.size();
    std::size_t index = from.index() * (n - 1) + to.index() - (to > from ? 1 : 0);
    if (wires == duplex::half) {
      const std::size_t a = std::min(from, to).index(), b = std::max(from, to).index();
      index = a * (2 * n - a - 1) / 2 + (b - a - 1);
    }
    return route{latency, {{resource_id(index), 1}}};
  }
};

/// Wires between neighbours in device order, closed to a ring (two devices: one wire). The shorter way
/// round, in device order first on a tie; latency per hop. Resources "A->B", or "A--B" if half duplex.
struct ring {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    std::vector<resource> all;
    for (std::size_t w = 0; w < wire_count(devices.size()); ++w) {
      const std::string& a = devices[w].name;
      const std::string& b = devices[(w + 1) % devices.size()].name;
      if (wires == duplex::full) {
        all.push_back({a + "->" + b, capacity});
        all.push_back({b + "->" + a, capacity});
      } else {  // "names in device order": the closing wire joins the first device to the last
        all.push_back({w + 1 < devices.size() ? a + "--" + b : b + "--" + a, capacity});
      }
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    const std::size_t n = devices.size();
    const std::size_t ahead = (to.index() + n - from.index()) % n;
    const bool forward = ahead <= n - ahead;
    const std::size_t hops = forward ? ahead : n - ahead;
    route r{latency * static_cast<double>(hops), {}};
    for (std::size_t h = 0; h < hops; ++h) {
      const std::size_t left = forward ? (from.index() + h) % n : (from.index() + n - 1 - h) % n;
      if (n == 2) {
        r.via.push_back({resource_id(wires == duplex::full ? (from.value == 0 ? 0U : 1U) : 0U), 1});
      } else if (wires == duplex::full) {
        r.via.push_back({resource_id(2 * left + (forward ? 0 : 1)), 1});
      } else {
        r.via.push_back({resource_id(left), 1});
      }
    }
    return r;
  }

 private:
  static std::size_t wire_count(std::size_t n) { return n < 2 ? 0 : n == 2 ? 1 : n; }
};

/// Every device has an uplink and a downlink to one switch. Resources "A.up", "A.down", or "A.link" if
/// half duplex; latency once.
struct star {
  bytes_per_second capacity;
  seconds latency = {};
  duplex wires = duplex::full;

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    std::vector<resource> all;
    for (const device& d : devices) {
      if (wires == duplex::half) {
        all.push_back({d.name + ".link", capacity});
      } else {
        all.push_back({d.name + ".up", capacity});
        all.push_back({d.name + ".down", capacity});
      }
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    if (wires == duplex::half) return route{latency, {{resource_id(from.index()), 1}, {resource_id(to.index()), 1}}};
    return route{latency, {{resource_id(2 * from.index()), 1}, {resource_id(2 * to.index() + 1), 1}}};
  }
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

  [[nodiscard]] std::vector<resource> resources(std::span<const device> devices) const {
    check(devices);
    std::vector<resource> all;
    for (const group& g : groups) {
      all.push_back({g.name, g.capacity});
      if (wires == duplex::half) {
        all.push_back({g.name + ".link", capacity});
      } else {
        all.push_back({g.name + ".up", capacity});
        all.push_back({g.name + ".down", capacity});
      }
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    return between(group_of(devices[from.index()]), group_of(devices[to.index()]));
  }
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
  [[nodiscard]] std::optional<route> between(std::size_t a, std::size_t b) const {
    const std::size_t each = wires == duplex::half ? 2 : 3;
    if (a == b) return route{groups[a].latency, {{resource_id(each * a), 1}}};
    return route{
        groups[a].latency + latency + groups[b].latency,
        {{resource_id(each * a), 1}, {resource_id(each * a + 1), 1}, {resource_id(each * b + each - 1), 1}, {resource_id(each * b), 1}}};
  }
  /// The groups that name a device, ascending.
  [[nodiscard]] std::unordered_map<std::string_view, std::vector<std::size_t>> groups_by_device_name() const {
    std::unordered_map<std::string_view, std::vector<std::size_t>> all;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::string& name : groups[g].devices) all[name].push_back(g);
    }
    return all;
  }
  [[nodiscard]] std::size_t group_of(const device& d) const {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const std::string& name : groups[g].devices) {
        if (name == d.name) return g;
      }
    }
    throw invalid_input("hierarchical topology: device \"" + d.name + "\" is in no group");
  }
  void check(std::span<const device> devices) const {
    const auto known = groups_by_device_name();
    for (const device& d : devices) {
      const auto it = known.find(d.name);
      const std::size_t found = it == known.end() ? 0 : it->second.size();
      if (found != 1) {
        throw invalid_input("hierarchical topology: device \"" + d.name + "\" is in " + std::to_string(found) +
                            " groups; expected exactly one");
      }
    }
  }
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
  [[nodiscard]] std::optional<route> find_route(std::span<const device> devices, device_id from, device_id to) const {
    const rule* best = nullptr;
    int best_named = -1;
    for (const rule& r : rules) {
      const bool any_from = r.from == "*", any_to = r.to == "*";
      if (!any_from && r.from != devices[from.index()].name) continue;
      if (!any_to && r.to != devices[to.index()].name) continue;
      const int named = (any_from ? 0 : 1) + (any_to ? 0 : 1);
      if (named > best_named) {
        best = &r;
        best_named = named;
      }
    }
    if (best == nullptr) return std::nullopt;
    return best->path;
  }
};

static_assert(check_network_model<shared_medium>() && check_network_model<mesh>() && check_network_model<ring>() &&
              check_network_model<star>() && check_network_model<hierarchical>() && check_network_model<route_table>());

}  // namespace hetplan
