// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How transfers that are under way at one time share the network: the door for sharings.

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/names_member.hpp>
#include <hetplan/problem/any_network_policy.hpp>

namespace hetplan {

/// A transfer drains at another rate [B/s] from now on; one has ended. Transfers are known by a number, from start to end.
using rate_changed = std::function<void(std::uint32_t transfer, double rate)>;
using transfer_finished = std::function<void(std::uint32_t transfer)>;

template <class S>
concept starts_transfers =
    requires(S& s, double now_s, std::uint32_t number, const tasks::transfer& t, const std::span<const resource_use>& route) {
      { s.start(now_s, number, t, route) } -> std::same_as<void>;  // it has a volume and a resource; `t` and `route` outlive the run
    };
template <class S>
concept updates_rates = requires(S& s, double now_s, const rate_changed& changed) {
  { s.update(now_s, changed) } -> std::same_as<void>;  // after all starts and ends of an instant; a rate is 0 until it is changed
};
template <class S>
concept tells_next_end = requires(S& s) {
  { s.next_end() } -> std::same_as<double>;  // [s] of a transfer, or when rates change by themselves; infinite: neither
};
template <class S>
concept finishes_transfers = requires(S& s, double time_s, const transfer_finished& finished) {
  { s.finish_until(time_s, finished) } -> std::same_as<void>;  // all that next_end tells up to then, so that it tells later ones
};
/// Optional: without it, a run in which capacities change is bad input.
template <class S>
concept follows_capacities = requires(S& s, std::size_t resource, double capacity) {
  { s.set_capacity(resource, capacity) } -> std::same_as<void>;  // [B/s] from now on; an update follows
};

/// Gives every transfer under way a rate, such that weight * rate of all transfers on a resource is at most its capacity.
/// Optional members: set_capacity, and a network policy's access (without it `shared`). One object serves one run.
template <class S>
concept network_sharing = starts_transfers<S> && updates_rates<S> && tells_next_end<S> && finishes_transfers<S>;

namespace detail {

struct calls_set_capacity {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.set_capacity(a...));
  template <class M>
  static auto address() -> decltype(&M::set_capacity);
};
struct calls_access {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.access(a...));
  template <class M>
  static auto address() -> decltype(&M::access);
};

}  // namespace detail

namespace detail {
/// Likely slips in the optional members' names.
template <class S>
concept nearly_names_set_capacity = HETPLAN_HAS_FUNCTION(S, set_capacities) || HETPLAN_HAS_FUNCTION(S, setCapacity) ||
                                    HETPLAN_HAS_FUNCTION(S, setcapacity) || HETPLAN_HAS_FUNCTION(S, set_capcity);
template <class S>
concept nearly_names_access = HETPLAN_HAS_FUNCTION(S, acces) || HETPLAN_HAS_FUNCTION(S, acess) || HETPLAN_HAS_FUNCTION(S, route_access);
}  // namespace detail

template <class S>
consteval bool check_network_sharing() {
  static_assert(starts_transfers<S>,
                "network_sharing needs: void start(double now_s, std::uint32_t number, const hetplan::tasks::transfer&, "
                "std::span<const hetplan::resource_use> route)");
  static_assert(updates_rates<S>, "network_sharing needs: void update(double now_s, const hetplan::rate_changed&)");
  static_assert(tells_next_end<S>, "network_sharing needs: double next_end()");
  static_assert(finishes_transfers<S>, "network_sharing needs: void finish_until(double time_s, const hetplan::transfer_finished&)");
  static_assert(follows_capacities<S> || !names_member<S, detail::calls_set_capacity, double>,
                "network_sharing's optional capacities are: void set_capacity(std::size_t resource, double capacity)");
  static_assert(opens_routes<S> || !names_member<S, detail::calls_access>,
                "network_sharing's optional access is: hetplan::route_access access() const");
  static_assert(follows_capacities<S> || !detail::nearly_names_set_capacity<S>,
                "network_sharing's optional member is called set_capacity; this sharing has one of nearly that name");
  static_assert(opens_routes<S> || !detail::nearly_names_access<S>,
                "network_sharing's optional member is called access; this sharing has one of nearly that name");
  return network_sharing<S>;
}

/// When transfers may start under a sharing. Throws invalid_model: see checked_access.
template <network_sharing S>
[[nodiscard]] route_access access_of([[maybe_unused]] const S& sharing) {
  if constexpr (opens_routes<S>) return checked_access(sharing.access(), "network sharing");
  else return route_access::shared;
}

}  // namespace hetplan
