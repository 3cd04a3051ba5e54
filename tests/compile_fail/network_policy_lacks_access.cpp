// SPDX-License-Identifier: BSL-1.0
// expect: network_policy needs: hetplan::route_access access() const
#include <hetplan/simulate/simulation.hpp>

struct my_policy {
  int tier(const hetplan::tasks::transfer& t) const { return t.microbatch; }
};
static_assert(hetplan::check_network_policy<my_policy>());
