// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/topology.hpp>

#include <algorithm>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE std::optional<route> shared_medium::find_route(std::span<const device>, device_id, device_id) const {
  return route{latency, {{resource_id(0), 1}}};
}

HETPLAN_INLINE std::vector<resource> mesh::resources(std::span<const device> devices) const {
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

HETPLAN_INLINE std::optional<route> mesh::find_route(std::span<const device> devices, device_id from, device_id to) const {
  const std::size_t n = devices.size();
  std::size_t index = from.index() * (n - 1) + to.index() - (to > from ? 1 : 0);
  if (wires == duplex::half) {
    const std::size_t a = std::min(from, to).index(), b = std::max(from, to).index();
    index = a * (2 * n - a - 1) / 2 + (b - a - 1);
  }
  return route{latency, {{resource_id(index), 1}}};
}

HETPLAN_INLINE std::vector<resource> ring::resources(std::span<const device> devices) const {
  std::vector<resource> all;
  for (std::size_t w = 0; w < wire_count(devices.size()); ++w) {
    const std::string& a = devices[w].name;
    const std::string& b = devices[(w + 1) % devices.size()].name;
    if (wires == duplex::full) {
      all.push_back({a + "->" + b, capacity});
      all.push_back({b + "->" + a, capacity});
    } else {  // the closing wire, too, is named in device order
      all.push_back({w + 1 < devices.size() ? a + "--" + b : b + "--" + a, capacity});
    }
  }
  return all;
}

HETPLAN_INLINE std::optional<route> ring::find_route(std::span<const device> devices, device_id from, device_id to) const {
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

HETPLAN_INLINE std::vector<resource> star::resources(std::span<const device> devices) const {
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

HETPLAN_INLINE std::optional<route> star::find_route(std::span<const device>, device_id from, device_id to) const {
  if (wires == duplex::half) return route{latency, {{resource_id(from.index()), 1}, {resource_id(to.index()), 1}}};
  return route{latency, {{resource_id(2 * from.index()), 1}, {resource_id(2 * to.index() + 1), 1}}};
}

HETPLAN_INLINE std::vector<resource> hierarchical::resources(std::span<const device> devices) const {
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

HETPLAN_INLINE std::optional<route> hierarchical::find_route(std::span<const device> devices, device_id from, device_id to) const {
  return between(group_of(devices[from.index()]), group_of(devices[to.index()]));
}

HETPLAN_INLINE std::optional<route> hierarchical::between(std::size_t a, std::size_t b) const {
  const std::size_t each = wires == duplex::half ? 2 : 3;
  if (a == b) return route{groups[a].latency, {{resource_id(each * a), 1}}};
  return route{
      groups[a].latency + latency + groups[b].latency,
      {{resource_id(each * a), 1}, {resource_id(each * a + 1), 1}, {resource_id(each * b + each - 1), 1}, {resource_id(each * b), 1}}};
}

HETPLAN_INLINE keyed<std::vector<std::size_t>> hierarchical::groups_by_device_name() const {
  keyed<std::vector<std::size_t>> all;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& name : groups[g].devices) all[parts_of(name)].push_back(g);
  }
  return all;
}

HETPLAN_INLINE std::size_t hierarchical::group_of(const device& d) const {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const std::string& name : groups[g].devices) {
      if (name == d.name) return g;
    }
  }
  throw invalid_input("hierarchical topology: device \"" + d.name + "\" is in no group");
}

HETPLAN_INLINE void hierarchical::check(std::span<const device> devices) const {
  const auto known = groups_by_device_name();
  for (const device& d : devices) {
    const std::vector<std::size_t>* named = known.find(parts_of(d.name));
    const std::size_t found = named == nullptr ? 0 : named->size();
    if (found != 1) {
      throw invalid_input("hierarchical topology: device \"" + d.name + "\" is in " + std::to_string(found) +
                          " groups; expected exactly one");
    }
  }
}

HETPLAN_INLINE std::optional<route> route_table::find_route(std::span<const device> devices, device_id from, device_id to) const {
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

}  // namespace hetplan
