// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/cluster.hpp>

#include <algorithm>
#include <optional>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE cluster cluster::with_devices(std::vector<device> devices) const {
  if (devices.size() != size()) {
    throw invalid_input("cluster \"" + name_ + "\": with_devices got " + std::to_string(devices.size()) + " devices; expected " +
                        std::to_string(size()));
  }
  cluster other = *this;
  other.devices_ = std::move(devices);
  other.number_devices();
  other.find_tier_resources();
  return other;
}

HETPLAN_INLINE device_id cluster::find(std::string_view name) const {
  for (const device& d : devices_) {
    if (d.name == name) return d.id;
  }
  throw invalid_input("cluster \"" + name_ + "\" has no device \"" + std::string(name) + "\"");
}

HETPLAN_INLINE bool cluster::has_tiers() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const device& d) { return !d.tiers.empty(); });
}

HETPLAN_INLINE void cluster::number_devices() {
  if (devices_.empty()) throw invalid_input("cluster \"" + name_ + "\": expected at least one device");
  key_index seen;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    device& d = devices_[i];
    d.id = device_id(i);
    if (d.kind.empty()) d.kind = d.name;
    check_device(d);
    if (!seen.insert(parts_of(d.name))) throw invalid_input("cluster \"" + name_ + "\": device \"" + d.name + "\" appears twice");
  }
}

HETPLAN_INLINE void cluster::find_tier_resources() {
  for (device& d : devices_) {
    for (memory_tier& t : d.tiers) {
      t.shared = {};
      if (t.resource.empty()) continue;
      const auto all = network_.resources();
      const auto known = std::find_if(all.begin(), all.end(), [&](const resource& r) { return r.name == t.resource; });
      if (known == all.end())
        throw invalid_input("cluster \"" + name_ + "\": tier \"" + t.name + "\" of device \"" + d.name + "\" has the resource \"" +
                            t.resource + "\"; expected one of the network");
      t.shared = resource_id(static_cast<std::size_t>(known - all.begin()));
    }
  }
}

namespace detail {

/// Returns the devices with tiers of their own, each as fast as its resource alone.
[[nodiscard]] HETPLAN_INLINE std::vector<device> with_own_tiers(const cluster& c) {
  std::vector<device> all(c.devices().begin(), c.devices().end());
  for (device& d : all) {
    for (memory_tier& t : d.tiers) {
      if (t.shared.valid()) t.bandwidth = std::min(t.bandwidth, c.network()[t.shared].capacity);
      t.resource.clear();
      t.shared = {};
    }
  }
  return all;
}

/// Network model of the kept devices, without the routes over a resource that is down.
struct part_of_network {
  const network& whole;
  std::span<const device_id> original;
  std::span<const bytes_per_second> capacities;

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const {
    std::vector<resource> all(whole.resources().begin(), whole.resources().end());
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (capacities[r].value() > 0) all[r].capacity = capacities[r];
    }
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    const route* way = whole.find(original[from.index()], original[to.index()]);
    if (way == nullptr) return std::nullopt;
    for (const resource_use& u : way->via) {
      if (capacities[u.resource.index()].value() <= 0) return std::nullopt;
    }
    return *way;
  }
};

}  // namespace detail

HETPLAN_INLINE cluster_part part_of(const cluster& whole, std::span<const char> keep, std::span<const bytes_per_second> capacities) {
  if (keep.size() != whole.size() || capacities.size() != whole.network().resources().size()) {
    throw invalid_input("part_of: " + std::to_string(keep.size()) + " devices and " + std::to_string(capacities.size()) +
                        " capacities; cluster \"" + whole.name() + "\" has " + std::to_string(whole.size()) + " and " +
                        std::to_string(whole.network().resources().size()));
  }
  std::vector<device> kept;
  std::vector<device_id> original, renamed(whole.size());
  for (const device& d : whole.devices()) {
    if (keep[d.id.index()] == 0) continue;
    renamed[d.id.index()] = device_id(kept.size());
    original.push_back(d.id);
    kept.push_back(d);
  }
  if (kept.empty()) throw invalid_input("part_of: no device of cluster \"" + whole.name() + "\" is kept; expected at least one");
  cluster devices(whole.name(), std::move(kept), detail::part_of_network{whole.network(), original, capacities});
  return {std::move(devices), std::move(original), std::move(renamed)};
}

namespace detail {

/// Network model that joins all devices at no cost.
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

HETPLAN_INLINE cluster without_network_costs(const cluster& c) { return {c.name(), detail::with_own_tiers(c), detail::free_routes{}}; }

HETPLAN_INLINE device_id median_device(const cluster& c) {
  std::vector<device_id> by_rate;
  for (const device& d : c.devices()) by_rate.push_back(d.id);
  sort_by(by_rate, [&](device_id d) { return c[d].total_compute(); });
  return by_rate[(by_rate.size() - 1) / 2];
}

HETPLAN_INLINE cluster homogeneous(const cluster& c, device_id like) {
  bytes least = c[like].memory_for_layers();
  for (const device& d : c.devices()) least = std::min(least, d.memory_for_layers());
  std::vector<device> alike;
  double rate = 0, latency = 0;
  int pairs = 0;
  device copied = c[like];
  copied.tiers.clear();  // a tier of that name must exist on every device
  for (const device& d : c.devices()) {
    device copy = copied;
    copy.id = d.id;
    copy.name = d.name;
    copy.memory = least;
    copy.memory_budget.reset();
    copy.memory_overhead = {};
    alike.push_back(std::move(copy));
    for (const device& e : c.devices()) {
      const route* way = d.id == e.id ? nullptr : c.network().find(d.id, e.id);
      if (way == nullptr || way->via.empty()) continue;
      rate += c.network().peak_bandwidth(d.id, e.id).value();
      latency += way->latency.value();
      ++pairs;
    }
  }
  if (pairs == 0) return c.with_devices(std::move(alike));  // no pair is joined at a finite rate
  return {c.name(), std::move(alike), mesh{bytes_per_second(rate / pairs), seconds(latency / pairs)}};
}

namespace detail {

/// Network model with a wire per route, "A->B", or per pair, "A--B", at peak bandwidth. Infinitely fast routes stay so.
class private_wires {
 public:
  private_wires(const cluster& c, duplex wires) : shared_(c.network()), size_(c.size()), wire_of_(size_ * size_) {
    for (const device& a : c.devices()) {
      for (const device& b : c.devices()) {
        if (!has_wire(a.id, b.id)) continue;
        const auto rate = shared_.peak_bandwidth(a.id, b.id);
        if (wires == duplex::half && b.id < a.id && has_wire(b.id, a.id)) {  // shares the opposite wire, at the lower rate
          const resource_id wire = wire_of(b.id, a.id);
          wires_[wire.index()].capacity = std::min(wires_[wire.index()].capacity, rate);
          wire_of_[a.id.index() * size_ + b.id.index()] = wire;
          continue;
        }
        wire_of_[a.id.index() * size_ + b.id.index()] = resource_id(wires_.size());
        wires_.push_back({a.name + (wires == duplex::half ? "--" : "->") + b.name, rate});
      }
    }
  }
  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const { return wires_; }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    const route* way = shared_.find(from, to);
    if (way == nullptr) return std::nullopt;
    route alone{way->latency, {}};
    if (has_wire(from, to)) alone.via.push_back({wire_of(from, to), 1});
    return alone;
  }

 private:
  [[nodiscard]] bool has_wire(device_id from, device_id to) const {
    const route* way = shared_.find(from, to);
    return way != nullptr && !way->via.empty();
  }
  [[nodiscard]] resource_id wire_of(device_id from, device_id to) const { return wire_of_[from.index() * size_ + to.index()]; }

  const network& shared_;
  std::size_t size_;
  std::vector<resource_id> wire_of_;  ///< by ordered pair
  std::vector<resource> wires_;
};

}  // namespace detail

HETPLAN_INLINE cluster uncontended(const cluster& c, duplex wires) {
  return {c.name(), detail::with_own_tiers(c), detail::private_wires(c, wires)};
}

}  // namespace hetplan
