// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/placement_windows.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE placement_windows::placement_windows(placement_columns& c) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const placement_table& t = *c.table;
  const std::size_t n = t.size(), d = t.devices();
  const auto carried = [&](std::size_t e, std::size_t k, std::size_t l) { return carried_s(t, c.rules.copies, e, k, l) / c.unit_s; };
  head.assign(n * d, 0);
  tail.assign(n * d, never);
  for (const std::size_t v : t.order()) {
    for (std::size_t k = 0; k < d; ++k) {
      for (const std::uint32_t e : t.in_edges(v)) {
        const std::size_t u = t.edges()[e].from;
        double best = never;
        for (std::size_t j = 0; j < d; ++j) {
          if (c.may_be_on(u, j)) best = std::min(best, head[u * d + j] + c.time(u, j) + carried(e, j, k));
        }
        head[v * d + k] = std::max(head[v * d + k], best);
      }
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    const std::size_t v = t.order()[i];
    double through = never;
    for (std::size_t k = 0; k < d; ++k) {
      double behind = 0;
      for (const std::uint32_t e : t.out_edges(v)) {
        double best = never;
        for (std::size_t j = 0; j < d; ++j) best = std::min(best, carried(e, k, j) + tail[t.edges()[e].to * d + j]);
        behind = std::max(behind, best);
      }
      const double whole = c.may_be_on(v, k) ? head[v * d + k] + c.time(v, k) + behind : never;
      if (whole <= c.limit) tail[v * d + k] = c.time(v, k) + behind;
      else c.upper(c.on(v, k)) = 0;
      through = std::min(through, whole);
    }
    path = std::max(path, through);
  }
}

}  // namespace HETPLAN_NAMESPACE::place
