// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who gets bandwidth: the door for network policies, and the ones that ship.

#include <concepts>

#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE {

/// When a transfer may start on its route. All but `unlimited` share the rates of resources max-min.
enum class route_access {
  shared,           ///< at once
  exclusive_ports,  ///< when its sender's out-port and its receiver's in-port are free; held to its end
  exclusive_links,  ///< when all resources of its route are free; held to its end
  unlimited         ///< at once, at its route's peak rate, whatever others do
};

template <class P>
concept ranks_transfers = requires(const P& p, const tasks::transfer& t) {
  { p.tier(t) } -> std::same_as<int>;  // smaller first; a tier shares max-min what smaller tiers leave
};
template <class P>
concept opens_routes = requires(const P& p) {
  { p.access() } -> std::same_as<route_access>;  // when a transfer may start, and whether others slow it
};

/// How transfers share the network. Pure.
template <class P>
concept network_policy = ranks_transfers<P> && opens_routes<P>;

template <class P>
consteval bool check_network_policy() {
  static_assert(ranks_transfers<P>, "network_policy needs: int tier(const hetplan::tasks::transfer&) const");
  static_assert(opens_routes<P>, "network_policy needs: hetplan::route_access access() const");
  return network_policy<P>;
}

/// Max-min fairness with equal rates for all: what uncontrolled TCP does.
struct fair_share {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// Smaller priority numbers first; max-min among equals.
struct by_priority {
  [[nodiscard]] int tier(const tasks::transfer& t) const { return t.priority; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// One transfer out of and one into a device at a time, without pre-emption (Moirai, eq. 8); transfers
/// that have their ports share resources by max-min.
struct exclusive_ports {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_ports; }
};

/// One transfer on every resource at a time, without pre-emption.
struct exclusive_links {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_links; }
};

/// Nobody is ever in anybody's way: the networks of papers on placement.
struct unlimited {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::unlimited; }
};

/// The policy that a plan names.
struct policy_of_plan {
  sharing kind = sharing::fair_share;
  [[nodiscard]] int tier(const tasks::transfer& t) const { return kind == sharing::priority ? t.priority : 0; }
  [[nodiscard]] route_access access() const {
    switch (kind) {
      case sharing::exclusive: return route_access::exclusive_ports;
      case sharing::per_link: return route_access::exclusive_links;
      case sharing::unlimited: return route_access::unlimited;
      case sharing::fair_share:
      case sharing::priority: break;
    }
    return route_access::shared;
  }
};

static_assert(check_network_policy<fair_share>() && check_network_policy<by_priority>() && check_network_policy<exclusive_ports>() &&
              check_network_policy<exclusive_links>() && check_network_policy<unlimited>() && check_network_policy<policy_of_plan>());

}  // namespace HETPLAN_NAMESPACE
