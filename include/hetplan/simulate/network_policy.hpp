// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who gets bandwidth: the door for network policies, and the ones that ship.

#include <concepts>

#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

template <class P>
concept ranks_transfers = requires(const P& p, const tasks::transfer& t) {
  { p.tier(t) } -> std::same_as<int>;  // smaller first; a tier shares max-min what smaller tiers leave
};
template <class P>
concept limits_ports = requires(const P& p) {
  { p.one_port() } -> std::same_as<bool>;  // a transfer waits until its sender's out- and receiver's in-port are free
};

/// How transfers share the network. Pure.
template <class P>
concept network_policy = ranks_transfers<P> && limits_ports<P>;

template <class P>
consteval bool check_network_policy() {
  static_assert(ranks_transfers<P>, "network_policy needs: int tier(const hetplan::tasks::transfer&) const");
  static_assert(limits_ports<P>, "network_policy needs: bool one_port() const");
  return network_policy<P>;
}

/// Max-min fairness with equal rates for all: what uncontrolled TCP does.
struct fair_share {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] bool one_port() const { return false; }
};

/// Smaller priority numbers first; max-min among equals.
struct by_priority {
  [[nodiscard]] int tier(const tasks::transfer& t) const { return t.priority; }
  [[nodiscard]] bool one_port() const { return false; }
};

/// One transfer out of and one into a device at a time, without pre-emption (Moirai, eq. 8); transfers
/// that have their ports share resources by max-min.
struct exclusive_ports {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] bool one_port() const { return true; }
};

/// The policy that a plan names.
struct policy_of_plan {
  sharing kind = sharing::fair_share;
  [[nodiscard]] int tier(const tasks::transfer& t) const { return kind == sharing::priority ? t.priority : 0; }
  [[nodiscard]] bool one_port() const { return kind == sharing::exclusive; }
};

static_assert(check_network_policy<fair_share>() && check_network_policy<by_priority>() &&
              check_network_policy<exclusive_ports>() && check_network_policy<policy_of_plan>());

}  // namespace hetplan
