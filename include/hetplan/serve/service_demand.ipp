// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_demand.hpp>

#include <cmath>
#include <numeric>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE service_demand::service_demand(const edge_cloud& cloud, const std::vector<service>& services,
                                              std::span<const request> requests, seconds window)
    : service_demand(cloud.size(), services.size()) {
  if (!std::isfinite(window.value()) || !(window.value() > 0))
    throw invalid_input("service_demand: window = " + to_text(window.value()) + " s; expected a finite time > 0");
  for (const auto& r : requests) {
    const double credit = services[r.service.index()].is_stream() ? static_cast<double>(r.length) : 1;
    per_s_[r.server.index() * services_ + r.service.index()] += credit;
  }
  for (auto& d : per_s_) d /= window.value();
}

HETPLAN_INLINE double service_demand::total() const { return std::accumulate(per_s_.begin(), per_s_.end(), 0.0); }

}  // namespace HETPLAN_NAMESPACE::serve
