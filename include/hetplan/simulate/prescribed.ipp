// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/prescribed.hpp>

#include <cmath>
#include <limits>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE prescribed_network::prescribed_network(std::span<const resource> resources)
    : capacity_(resources.size()), used_(resources.size(), 0) {
  for (std::size_t r = 0; r < resources.size(); ++r) capacity_[r] = resources[r].capacity.value();
}

HETPLAN_INLINE void prescribed_network::start(double now, double volume_bytes, std::span<const resource_use> via, int /*tier*/,
                                              std::uint32_t tag) {
  active_.push_back({via, volume_bytes, volume_bytes, 0, now, tag});
}

HETPLAN_INLINE void prescribed_network::set_rate(std::uint32_t tag, double rate) {
  if (rate_of_.size() <= tag) rate_of_.resize(tag + 1, 0);
  rate_of_[tag] = rate;
}

HETPLAN_INLINE double prescribed_network::next_end() const {
  double next = std::numeric_limits<double>::infinity();
  for (const transfer& x : active_) next = std::min(next, end_of(x));
  return next;
}

HETPLAN_INLINE double prescribed_network::end_of(const transfer& x) const {
  const double next = x.tag < rate_of_.size() ? rate_of_[x.tag] : 0;
  if (next == 0 && x.remaining <= forgiven * x.volume) return x.since;
  return x.rate > 0 ? x.since + x.remaining / x.rate : std::numeric_limits<double>::infinity();
}

namespace detail {

HETPLAN_INLINE void check_rates(const prescribed& p, std::size_t transfers) {
  for (std::size_t i = 0; i < p.rates.size(); ++i) {
    const rate_change& r = p.rates[i];
    if (r.transfer < transfers && std::isfinite(r.at_s) && std::isfinite(r.rate) && r.rate >= 0) continue;
    throw invalid_input("simulate: prescribed rate " + std::to_string(i) + " is " + to_text(r.rate) + " B/s for transfer " +
                        std::to_string(r.transfer) + " at " + to_text(r.at_s) + " s; expected a finite rate >= 0, one of " +
                        std::to_string(transfers) + " transfers, a finite time");
  }
}

}  // namespace detail

}  // namespace HETPLAN_NAMESPACE
