// SPDX-License-Identifier: BSL-1.0
// expect: network_policy needs: int tier(const hetplan::tasks::transfer&) const
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

struct my_policy {
  double tier(const tasks::transfer&) const { return 0.5; }
  route_access access() const { return route_access::shared; }
};
const judge_models wrong{.network = my_policy{}};
