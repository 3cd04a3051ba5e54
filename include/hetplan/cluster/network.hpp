// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Networks: resources with capacities and, for each ordered pair of devices, a route.

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/device.hpp>
#include <hetplan/core/error.hpp>

namespace hetplan {

/// Resource that transfers share: a wire, one direction of a wire, a radio channel, an uplink.
struct resource {
  std::string name;
  bytes_per_second capacity;

  friend bool operator==(const resource&, const resource&) = default;
};

/// Use of a resource by a route: a transfer at rate x takes weight * x of its capacity.
struct resource_use {
  resource_id resource;
  double weight = 1;

  friend bool operator==(const resource_use&, const resource_use&) = default;
};

/// Route from one device to another. Without resources, it is infinitely fast after its latency.
struct route {
  seconds latency = {};
  std::vector<resource_use> via = {};

  friend bool operator==(const route&, const route&) = default;
};

template <class M>
concept lists_resources = requires(const M& m, std::span<const device> devices) {
  { m.resources(devices) } -> std::same_as<std::vector<resource>>;  // capacity finite, > 0; names unique
};
template <class M>
concept finds_routes = requires(const M& m, std::span<const device> devices, device_id from, device_id to) {
  { m.find_route(devices, from, to) } -> std::same_as<std::optional<route>>;  // from != to; empty = no route
};

/// Resources of a network, and the routes of devices over them. Pure: the same devices give the same resources and routes.
///
/// * `resources` is called once; the index in its result is the `resource_id` that routes name.
/// * `find_route` is called for every ordered pair of different devices. A missing route is an error only if a plan needs it. A route
///   without resources is infinitely fast after its latency.
/// * A transfer at rate x takes weight * x of a resource's capacity; the weights of a resource listed twice add up.
/// * Capacities are finite and > 0, latencies finite and >= 0, weights finite and > 0, resources known; else `invalid_model` is thrown.
///
/// Ships: `shared_medium`, `mesh`, `ring`, `star`, `hierarchical`, `route_table` (cluster/topology.hpp). How to:
/// docs/how-to/own-network.md.
template <class M>
concept network_model = lists_resources<M> && finds_routes<M>;

/// A refinement, for models with a look-up per device: `route_finder` returns a callable that answers like `find_route`.
template <class M>
concept prepares_routes = network_model<M> && requires(const M& m, std::span<const device> devices, device_id from, device_id to) {
  { m.route_finder(devices)(from, to) } -> std::same_as<std::optional<route>>;  // called while model and devices live
};
namespace detail {
struct route_finder_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.route_finder(a...));
  template <class M>
  static auto address() -> decltype(&M::route_finder);
};
}  // namespace detail

template <class M>
concept names_route_finder = prepares_routes<M> || names_member<M, detail::route_finder_call, std::span<const device>, device_id>;

namespace detail {
template <class M>
concept nearly_names_route_finder =
    HETPLAN_HAS_FUNCTION(M, route_finders) || HETPLAN_HAS_FUNCTION(M, routefinder) || HETPLAN_HAS_FUNCTION(M, routeFinder) ||
    HETPLAN_HAS_FUNCTION(M, router_finder) || HETPLAN_HAS_FUNCTION(M, routes_finder);
}  // namespace detail

template <class M>
consteval bool check_network_model() {
  static_assert(lists_resources<M>, "network_model needs: std::vector<resource> resources(std::span<const device>) const");
  static_assert(finds_routes<M>,
                "network_model needs: std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const");
  static_assert(
      prepares_routes<M> || !names_route_finder<M>,
      "a network_model's route finder is: auto route_finder(std::span<const device>) const, called with (device_id from, device_id to), "
      "which answers std::optional<route>");
  static_assert(prepares_routes<M> || !detail::nearly_names_route_finder<M>,
                "a network_model's optional member is called route_finder; this model has one of nearly that name");
  return network_model<M>;
}

/// Network model evaluated for given devices, as read by the simulator and the planners.
/// Complexity  N^2 calls of the model, or of its route finder, to construct.   Throws  invalid_model if the model breaks its rules.
class network {
 public:
  network() = default;

  template <network_model M>
  network(const M& model, std::span<const device> devices)
      : resources_(model.resources(devices)), devices_(devices.size()), routes_(devices_ * devices_) {
    static_assert(check_network_model<M>());
    check_resources();
    const auto find = [&] {
      if constexpr (prepares_routes<M>) return model.route_finder(devices);
      else return [&](device_id from, device_id to) { return model.find_route(devices, from, to); };
    }();
    std::vector<std::size_t> at(resources_.size(), none);
    for (const device& a : devices) {
      for (const device& b : devices) {
        if (a.id == b.id) continue;
        if (auto found = find(a.id, b.id)) set(a, b, std::move(*found), at);
      }
    }
  }

  [[nodiscard]] std::span<const resource> resources() const { return resources_; }
  [[nodiscard]] const resource& operator[](resource_id r) const { return resources_[r.index()]; }

  /// Returns the route of an ordered pair, or null if there is none (a device has none to itself).
  [[nodiscard]] const route* find(device_id from, device_id to) const;

  /// Returns the minimum of capacity / weight over the route; infinite without resources, 0 without a route.
  [[nodiscard]] bytes_per_second peak_bandwidth(device_id from, device_id to) const;

  friend bool operator==(const network&, const network&) = default;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  void check_resources() const;
  /// Stores a route after checks, with the weights of repeated resources added up.
  ///
  /// @param at  By resource: `none`, before and after.
  void set(const device& a, const device& b, route given, std::vector<std::size_t>& at);

  std::vector<resource> resources_;
  std::size_t devices_ = 0;
  std::vector<std::optional<route>> routes_;
};

/// Seconds of a transfer on an otherwise idle network: latency_s + volume s_per_byte. Infinite if a route is missing.
struct transfer_cost {
  double latency_s = 0;
  double s_per_byte = 0;

  [[nodiscard]] double time_s(double volume) const { return volume > 0 ? latency_s + volume * s_per_byte : latency_s; }
  friend bool operator==(const transfer_cost&, const transfer_cost&) = default;
};

/// Cost of traffic between two groups of devices in both directions.
struct exchange_cost {
  transfer_cost forward;
  transfer_cost backward;
  bool half_duplex = false;  ///< true if the directions of some pair share a resource: they take turns

  /// Returns the seconds of forward and backward traffic at the same time.
  [[nodiscard]] double together_s(double forward_s, double backward_s) const;
  /// Returns the seconds of sending a volume in both directions at the same time.
  [[nodiscard]] double swap_s(double volume) const { return together_s(forward.time_s(volume), backward.time_s(volume)); }

  /// Raises every cost to that of another pair if that is higher.
  void cover(const exchange_cost& other);
  friend bool operator==(const exchange_cost&, const exchange_cost&) = default;
};

/// Returns the cost at peak bandwidth and latency of an ordered pair; both infinite without a route.
[[nodiscard]] transfer_cost peak_transfer(const network& net, device_id from, device_id to);

/// Returns the cost between two groups, the slowest pair charged for all: least bandwidth, largest latency.
/// Source  Asteroid, section 3.2: a communication step is charged the least bandwidth between its groups.
[[nodiscard]] exchange_cost peak_exchange(const network& net, std::span<const device_id> a, std::span<const device_id> b);

/// Returns the worst cost of all pairs that have routes both ways; free if there is no such pair.
[[nodiscard]] exchange_cost worst_exchange(const network& net, std::span<const device> devices);

/// Returns the share of the reduced tensor that each of n devices sends to the next in a ring all-reduce.
[[nodiscard]] constexpr double ring_share(std::size_t n) {
  const auto devices = static_cast<double>(n);
  return 2 * (devices - 1) / devices;
}

/// Returns the cost of a ring all-reduce per byte of the reduced tensor: each device sends its ring_share to the next in list order, all
/// at once, so a resource is charged for all transfers over it.
///
/// Source     semantics, section 6. Deviation from Asteroid, eq. 5, which divides by the least bandwidth alone and so takes a shared
///            medium for n wires.
/// Complexity O(n * resources on a route).
[[nodiscard]] transfer_cost ring_reduction(const network& net, std::span<const device_id> devices);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/cluster/network.ipp>
#endif
