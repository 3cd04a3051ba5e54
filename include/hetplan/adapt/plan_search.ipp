// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/plan_search.hpp>

namespace HETPLAN_NAMESPACE::adapt {

HETPLAN_INLINE double distance(const conditions& a, const conditions& b) {
  double most = 1;
  const auto compare = [&](double x, double y) {
    if (x != y) most = std::max({most, x / y, y / x});
  };
  for (std::size_t d = 0; d < a.speed.size(); ++d) {
    if (a.works(device_id(d)) && b.works(device_id(d))) compare(a.speed[d], b.speed[d]);
  }
  for (std::size_t r = 0; r < a.capacity.size(); ++r) compare(a.capacity[r].value(), b.capacity[r].value());
  return (most - 1) / 0.1;
}

}  // namespace HETPLAN_NAMESPACE::adapt
