// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How much is asked where.

#include <cstddef>
#include <span>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

/// Requests (frames of streams) a second, by the server at which they enter and the service that they want; and how bursty they are.
///
/// Memory  O(servers x services).
/// Source  EPARA, section 3.3 (request arrivals of a period T). Ours: the dispersion.
class service_demand {
 public:
  service_demand(std::size_t servers, std::size_t services) : services_(services), per_s_(servers * services) {}
  /// What was asked during a window, in order of arrival. Throws invalid_input: a window that is not above 0 and finite.
  service_demand(const edge_cloud& cloud, const std::vector<service>& services, std::span<const request> requests, seconds window);

  [[nodiscard]] double at(server_id s, service_id l) const { return per_s_[s.index() * services_ + l.index()]; }
  void set(server_id s, service_id l, double per_s) { per_s_[s.index() * services_ + l.index()] = per_s; }

  /// Variance over mean of how many come within an SLO (streams: within the length of one) in a ring: 1 for Poisson arrivals, and where
  /// fewer than 20 such times were seen; never below 1, so that nobody counts on a timetable.
  [[nodiscard]] double dispersion(std::size_t ring, service_id l) const {
    return dispersion_.empty() ? 1 : dispersion_[ring * services_ + l.index()];
  }

 private:
  std::size_t services_;
  std::vector<double> per_s_;       ///< [server][service]
  std::vector<double> dispersion_;  ///< [ring][service]; empty: 1
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/service_demand.ipp>
#endif
