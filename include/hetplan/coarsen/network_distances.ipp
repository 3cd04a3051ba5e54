// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/network_distances.hpp>

#include <algorithm>
#include <limits>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::coarsen {

HETPLAN_INLINE distance_matrix network_distances(const cluster& c, bytes message) {
  if (!is_finite(message) || message.value() < 0)
    throw invalid_input("network_distances: message = " + to_text(message.value()) + " B; expected finite >= 0");
  const auto one_way_s = [&](const device& from, const device& to) {
    const route* r = c.network().find(from.id, to.id);
    if (r == nullptr) return std::numeric_limits<double>::infinity();
    return (r->latency + message / c.network().peak_bandwidth(from.id, to.id)).value();
  };
  distance_matrix all(c.size());
  for (const device& a : c.devices()) {
    for (const device& b : c.devices().subspan(a.id.index() + 1))
      all.set(a.id.index(), b.id.index(), std::max(one_way_s(a, b), one_way_s(b, a)));
  }
  return all;
}

}  // namespace HETPLAN_NAMESPACE::coarsen
