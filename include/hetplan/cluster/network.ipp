// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/network.hpp>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE const route* network::find(device_id from, device_id to) const {
  if (from == to) return nullptr;
  const auto& r = routes_[from.index() * devices_ + to.index()];
  return r ? &*r : nullptr;
}

HETPLAN_INLINE bytes_per_second network::peak_bandwidth(device_id from, device_id to) const {
  const route* r = find(from, to);
  if (r == nullptr) return {};
  bytes_per_second peak(std::numeric_limits<double>::infinity());
  for (const resource_use& u : r->via) peak = std::min(peak, resources_[u.resource.index()].capacity / u.weight);
  return peak;
}

HETPLAN_INLINE void network::check_resources() const {
  std::unordered_set<std::string_view> names;
  names.reserve(resources_.size());
  for (const resource& r : resources_) {
    if (!names.insert(r.name).second) throw invalid_model("network: resource \"" + r.name + "\" appears twice");
    if (!is_finite(r.capacity) || r.capacity.value() <= 0) {
      throw invalid_model("network: resource \"" + r.name + "\" has capacity " + to_text(r.capacity.value()) + " B/s; expected finite > 0");
    }
  }
}

HETPLAN_INLINE void network::set(const device& a, const device& b, route given, std::vector<std::size_t>& at) {
  const auto fail = [&](const std::string& what) {
    throw invalid_model("network: route \"" + a.name + "\" -> \"" + b.name + "\" " + what);
  };
  if (!is_finite(given.latency) || given.latency.value() < 0) {
    fail("has latency " + to_text(given.latency.value()) + " s; expected finite >= 0");
  }
  std::size_t kept = 0;
  for (const resource_use u : given.via) {
    if (!u.resource.valid() || u.resource.index() >= resources_.size()) fail("uses an unknown resource");
    if (!std::isfinite(u.weight) || u.weight <= 0) fail("has weight " + to_text(u.weight) + "; expected finite > 0");
    if (at[u.resource.index()] == none) {
      at[u.resource.index()] = kept;
      given.via[kept++] = u;
    } else {
      double& sum = given.via[at[u.resource.index()]].weight;
      sum += u.weight;
      if (!std::isfinite(sum)) fail("uses a resource with weights that add up to " + to_text(sum) + "; expected finite > 0");
    }
  }
  given.via.resize(kept);
  for (const resource_use& u : given.via) at[u.resource.index()] = none;
  routes_[a.id.index() * devices_ + b.id.index()] = std::move(given);
}

}  // namespace hetplan
