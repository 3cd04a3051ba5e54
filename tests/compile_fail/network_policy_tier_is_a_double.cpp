// SPDX-License-Identifier: BSL-1.0
// expect: network_policy needs: int tier(const hetplan::tasks::transfer&) const
#include <hetplan/simulate/simulation.hpp>

struct my_policy {
  double tier(const hetplan::tasks::transfer& t) const { return t.volume_bytes; }
  hetplan::route_access access() const { return hetplan::route_access::shared; }
};
static_assert(hetplan::check_network_policy<my_policy>());
