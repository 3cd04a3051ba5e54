// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/prescribed.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE prescribed_sharing::prescribed_sharing(const network& net, const prescribed& given)
    : rates_(given.rates), load_(net.resources()) {
  std::stable_sort(rates_.begin(), rates_.end(), [](const rate_change& a, const rate_change& b) { return a.at_s < b.at_s; });
  std::uint32_t numbers = 0;
  for (const rate_change& r : rates_) numbers = std::max(numbers, r.transfer + 1);
  rate_of_.assign(numbers, 0);
}

HETPLAN_INLINE void prescribed_sharing::update(double now_s, const rate_changed& changed) {
  for (const auto& f : flows_) {
    flows_.set_rate(now_s, f.number, f.number < rate_of_.size() ? rate_of_[f.number] : 0, changed);
  }
  if (const auto excess = load_.exceeded_by(flows_)) {
    throw invalid_input("simulate: at " + to_text(now_s) + " s the prescribed rates take " + to_text(excess->taken) + " B/s of resource " +
                        std::to_string(excess->resource) + ", which has " + to_text(excess->capacity) + " B/s");
  }
}

HETPLAN_INLINE double prescribed_sharing::next_end() const {
  const double end_s = flows_.next_end();
  return next_ < rates_.size() ? std::min(end_s, rates_[next_].at_s) : end_s;
}

HETPLAN_INLINE void prescribed_sharing::finish_until(double time_s, const transfer_finished& finished) {
  flows_.finish_until(time_s, finished);
  for (; next_ < rates_.size() && rates_[next_].at_s <= time_s; ++next_) rate_of_[rates_[next_].transfer] = rates_[next_].rate;
}

namespace detail {

HETPLAN_INLINE void check_rates(const prescribed& p, std::size_t transfers, const simulator_options& options) {
  if (!options.background.empty()) throw invalid_input("simulate: background transfers under prescribed rates, which leave them none");
  for (std::size_t i = 0; i < p.rates.size(); ++i) {
    const rate_change& r = p.rates[i];
    if (r.transfer < transfers && std::isfinite(r.at_s) && std::isfinite(r.rate) && r.rate >= 0) continue;
    throw invalid_input("simulate: prescribed rate " + std::to_string(i) + " is " + to_text(r.rate) + " B/s for transfer " +
                        std::to_string(r.transfer) + " at " + to_text(r.at_s) + " s; expected a finite rate >= 0, one of " +
                        std::to_string(transfers) + " transfers, a finite time");
  }
}

}  // namespace detail

}  // namespace hetplan
