// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/uncontended.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace hetplan {

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
  return {c.name(), {c.devices().begin(), c.devices().end()}, detail::private_wires(c, wires)};
}

}  // namespace hetplan
