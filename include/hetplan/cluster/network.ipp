// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cluster/network.hpp>

#include <algorithm>
#include <string_view>

#include <hetplan/core/keyed.hpp>

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
  key_index names;
  for (const resource& r : resources_) {
    if (!names.insert(parts_of(r.name))) throw invalid_model("network: resource \"" + r.name + "\" appears twice");
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

HETPLAN_INLINE double exchange_cost::together_s(double forward_s, double backward_s) const {
  return half_duplex ? forward_s + backward_s : std::max(forward_s, backward_s);
}

HETPLAN_INLINE void exchange_cost::cover(const exchange_cost& other) {
  forward = {std::max(forward.latency_s, other.forward.latency_s), std::max(forward.s_per_byte, other.forward.s_per_byte)};
  backward = {std::max(backward.latency_s, other.backward.latency_s), std::max(backward.s_per_byte, other.backward.s_per_byte)};
  half_duplex = half_duplex || other.half_duplex;
}

HETPLAN_INLINE transfer_cost peak_transfer(const network& net, device_id from, device_id to) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const route* r = net.find(from, to);
  if (r == nullptr) return {inf, inf};
  return {r->latency.value(), 1 / net.peak_bandwidth(from, to).value()};
}

HETPLAN_INLINE exchange_cost peak_exchange(const network& net, std::span<const device_id> a, std::span<const device_id> b) {
  exchange_cost all;
  for (const device_id i : a) {
    for (const device_id j : b) {
      exchange_cost pair{peak_transfer(net, i, j), peak_transfer(net, j, i)};
      const route *forward = net.find(i, j), *backward = net.find(j, i);
      if (forward != nullptr && backward != nullptr) {
        for (const resource_use& u : forward->via) {
          for (const resource_use& v : backward->via) pair.half_duplex = pair.half_duplex || u.resource == v.resource;
        }
      }
      all.cover(pair);
    }
  }
  return all;
}

HETPLAN_INLINE exchange_cost worst_exchange(const network& net, std::span<const device> devices) {
  exchange_cost worst;
  for (const device& a : devices) {
    for (const device& b : devices) {
      if (a.id >= b.id || net.find(a.id, b.id) == nullptr || net.find(b.id, a.id) == nullptr) continue;
      const device_id one[] = {a.id}, other[] = {b.id};
      worst.cover(peak_exchange(net, one, other));
      worst.cover(peak_exchange(net, other, one));
    }
  }
  return worst;
}

HETPLAN_INLINE transfer_cost ring_reduction(const network& net, std::span<const device_id> devices) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (devices.size() < 2) return {};
  std::vector<double> load(net.resources().size(), 0);
  transfer_cost ring;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const route* r = net.find(devices[i], devices[(i + 1) % devices.size()]);
    if (r == nullptr) return {inf, inf};
    ring.latency_s = std::max(ring.latency_s, r->latency.value());
    for (const resource_use& u : r->via) load[u.resource.index()] += u.weight;
  }
  for (std::size_t r = 0; r < load.size(); ++r) {
    ring.s_per_byte = std::max(ring.s_per_byte, ring_share(devices.size()) * load[r] / net.resources()[r].capacity.value());
  }
  return ring;
}

}  // namespace hetplan
