// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_demand.hpp>

#include <algorithm>
#include <cmath>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

namespace detail {

/// How many arrivals fall into each of many equal times, one time after the other.
class counts_within {
 public:
  /// At this many times from the beginning, not before the one before.
  void add(double at) {
    const double time = std::floor(at);
    if (time > time_) close(time);
    ++count_;
  }
  /// Variance over mean of the times that are over.
  [[nodiscard]] double dispersion() const {
    if (time_ < 20 || !(sum_ > 0)) return 1;
    const double mean = sum_ / time_;
    return std::max(1.0, (squares_ / time_ - mean * mean) / mean);
  }

 private:
  void close(double time) {
    sum_ += count_;
    squares_ += count_ * count_;
    count_ = 0;
    time_ = time;
  }
  double time_ = 0;  ///< the one under way: so many are over
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace detail

HETPLAN_INLINE service_demand::service_demand(const edge_cloud& cloud, const std::vector<service>& services,
                                              std::span<const request> requests, seconds window)
    : service_demand(cloud.size(), services.size()) {
  if (!std::isfinite(window.value()) || !(window.value() > 0))
    throw invalid_input("service_demand: window = " + to_text(window.value()) + " s; expected a finite time > 0");
  const ring_sync rings(cloud);
  std::vector<detail::counts_within> counts(rings.rings() * services_);
  const double begin_s = requests.empty() ? 0 : requests.front().arrival_s;
  for (const auto& r : requests) {
    const auto l = r.service.index();
    const auto& s = services[l];
    per_s_[r.server.index() * services_ + l] += s.credit(r.length);
    const double time_s = s.is_stream() ? s.typical_length() / s.rate : s.latency.value();
    counts[rings.ring_of(r.server) * services_ + l].add((r.arrival_s - begin_s) / time_s);
  }
  for (auto& d : per_s_) d /= window.value();
  dispersion_.reserve(counts.size());
  for (auto& c : counts) dispersion_.push_back(c.dispersion());
}

}  // namespace hetplan::serve
