// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The network policies that ship.

#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Max-min fairness with equal rates, as with uncontrolled TCP.
struct fair_share {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// Smaller priority numbers first; max-min fairness among equal ones.
struct by_priority {
  [[nodiscard]] int tier(const tasks::transfer& t) const { return t.priority; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// One transfer out of and one into a device at a time, without pre-emption (Moirai, eq. 8). Transfers under way share resources max-min.
struct exclusive_ports {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_ports; }
};

/// One transfer on every resource at a time, without pre-emption.
struct exclusive_links {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_links; }
};

/// No contention: every transfer runs at its route's peak rate, as in papers on placement.
struct unlimited {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::unlimited; }
};

/// The policy that a plan or schedule names. The library itself simulates with this policy only, to compile one event loop.
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

}  // namespace hetplan
