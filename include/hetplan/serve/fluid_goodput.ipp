// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/fluid_goodput.hpp>

#include <cmath>
#include <cstdint>

namespace hetplan::serve {

namespace detail {

/// Counts arrivals in equal, consecutive intervals.
class counts_within {
 public:
  /// Adds an arrival at this many intervals from the beginning, in order of time.
  void add(double at) {
    if (const double time = std::floor(at); time > time_) {
      sum_ += count_;
      squares_ += count_ * count_;
      count_ = 0;
      time_ = time;
    }
    ++count_;
  }
  /// Returns variance over mean of the completed intervals.
  [[nodiscard]] double dispersion() const {
    if (time_ < 20 || !(sum_ > 0)) return 1;
    const double mean = sum_ / time_;
    return std::max(1.0, (squares_ / time_ - mean * mean) / mean);
  }

 private:
  double time_ = 0;  ///< the current interval, and the number of completed ones
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

HETPLAN_INLINE fluid_goodput::fluid_goodput(const edge_cloud& cloud, const std::vector<service>& services, const service_demand& demand,
                                            handling_reach reach)
    : services_(&services), demand_(demand), capacity_(cloud.size(), services.size()), reach_(reach), rings_(cloud),
      in_ring_(rings_.rings() * services.size()), way_s_(in_ring_.size()) {
  for (std::size_t r = 0; r < rings_.rings(); ++r) {
    const auto ring = rings_[r];
    double latency_s = 0;
    double s_per_byte_there = 0;
    double s_per_byte_back = 0;
    for (std::int32_t p = 0; p < ring.count; ++p) {
      const auto& s = cloud[server_id(ring.first + p)];
      latency_s += s.latency.value();
      s_per_byte_there += 1 / s.uplink.value() + 1 / s.downlink.value();
      s_per_byte_back += 1 / std::min(s.uplink, s.downlink).value();
    }
    for (std::size_t l = 0; l < services.size(); ++l) {
      const auto& s = services[l];
      const double there_b = s.request_size.value() + (s.generates ? s.bytes_per_token.value() * s.tokens.in : 0);
      const double back_b = s.is_stream() ? 0 : s.response_size.value();
      way_s_[r * services.size() + l] =
          ((s.is_stream() ? 2 : 4) * latency_s + there_b * s_per_byte_there + back_b * s_per_byte_back) / static_cast<double>(ring.count);
      auto& all = in_ring_[r * services.size() + l];
      for (std::int32_t p = 0; p < ring.count; ++p) all.demand += demand.at(server_id(ring.first + p), service_id(l));
    }
  }
}

HETPLAN_INLINE bool fluid_goodput::is_passed_on(std::size_t ring, service_id l) const {
  return reach_ == handling_reach::ring &&
         at_most(way_s_[ring * services_->size() + l.index()], (*services_)[l.index()].latency.value() / 2);
}

HETPLAN_INLINE double fluid_goodput::more(const flow& f, std::size_t ring, service_id l, double capacity) const {
  // Both results never grow with the present capacity, not even by rounding where they should be equal.
  if (arrivals_ == arrival_model::even) return std::min(capacity, std::max(0.0, f.demand - f.capacity));
  if (!(f.demand > 0)) return 0;
  // The rate within an SLO has variance dispersion * demand / SLO; for streams dispersion * demand * rate: each brings its whole rate. A
  // non-negative quantity with mean d and variance v exceeds a capacity c by at most (hypot(sqrt v, c - d) - (c - d)) / 2, and below the
  // knee (v + d^2) / 2d by at most d - c d^2 / (v + d^2): in the worst case mostly nothing comes there.
  const auto& s = (*services_)[l.index()];
  const double d = f.demand;
  const double variance = demand_.dispersion(ring, l) * d * (s.is_stream() ? s.rate : 1 / s.latency.value());
  const double second = variance + d * d;
  const double knee = second / (2 * d);
  const double below = std::clamp(knee - f.capacity, 0.0, capacity);
  const double gain = below * (d * d / second);
  if (below == capacity) return gain;  // exact: equal candidates must stay equal
  const auto excess = [&](double c) {
    const double slack = c - d;
    return (std::sqrt(variance + slack * slack) - slack) / 2;
  };
  return gain + (excess(std::max(knee, f.capacity)) - excess(f.capacity + capacity));
}

HETPLAN_INLINE placement_gain fluid_goodput::most(server_id leader, const allocation& a) const {
  const auto ring = rings_.ring_of(leader);
  const double at_home = more(at(leader, a.what), ring, a.what, a.capacity);
  if (!is_passed_on(ring, a.what)) return {at_home, at_home};
  return {more(in_ring_[ring * services_->size() + a.what.index()], ring, a.what, a.capacity), at_home};
}

HETPLAN_INLINE double fluid_goodput::value() const {
  const auto served = [&](const flow& f, std::size_t ring, service_id l) { return more({f.demand, 0}, ring, l, f.capacity); };
  double sum = 0;
  for (std::size_t r = 0; r < rings_.rings(); ++r) {
    for (std::size_t n = 0; n < services_->size(); ++n) {
      const service_id l(n);
      if (is_passed_on(r, l)) {
        sum += served(in_ring_[r * services_->size() + n], r, l);
        continue;
      }
      for (std::int32_t p = 0; p < rings_[r].count; ++p) sum += served(at(server_id(rings_[r].first + p), l), r, l);
    }
  }
  return sum;
}

HETPLAN_INLINE void fluid_goodput::add(const instance& i, const allocation& a) {
  const auto leader = i.leader();
  capacity_.set(leader, a.what, capacity_.at(leader, a.what) + a.capacity);
  in_ring_[rings_.ring_of(leader) * services_->size() + a.what.index()].capacity += a.capacity;
}

}  // namespace hetplan::serve
