// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/part.hpp>

#include <optional>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan {

namespace detail {

/// The routes between the devices that are kept, without those over a resource that is down.
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

}  // namespace hetplan
