// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/prescribed.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>

namespace hetplan {

HETPLAN_INLINE double transfers_under_way::flow::left(double now_s) const { return std::max(0.0, remaining - rate * (now_s - since)); }

HETPLAN_INLINE double transfers_under_way::flow::end_s() const {
  if (rate > 0) return since + remaining / rate;
  return remaining <= 1e-6 * transfer->volume_bytes ? since : std::numeric_limits<double>::infinity();
}

HETPLAN_INLINE void transfers_under_way::start(double now_s, std::uint32_t number, const tasks::transfer& t,
                                               std::span<const resource_use> route) {
  flows_.push_back({number, &t, route, t.volume_bytes, now_s, 0});
  if (place_of_.size() <= number) place_of_.resize(number + 1, nowhere);
  number_from(flows_.size() - 1);
}

HETPLAN_INLINE void transfers_under_way::set_rate(double now_s, std::uint32_t number, double rate, const rate_changed& changed) {
  flow& f = flows_[place_of_[number]];
  if (rate == f.rate) return;
  f.remaining = f.left(now_s);
  f.since = now_s;
  f.rate = rate;
  changed(number, rate);
}

HETPLAN_INLINE void transfers_under_way::stop(std::uint32_t number) {
  const std::size_t place = std::exchange(place_of_[number], nowhere);
  flows_.erase(flows_.begin() + static_cast<std::ptrdiff_t>(place));
  number_from(place);
}

HETPLAN_INLINE double transfers_under_way::next_end() const {
  double next = std::numeric_limits<double>::infinity();
  for (const flow& f : flows_) next = std::min(next, f.end_s());
  return next;
}

HETPLAN_INLINE void transfers_under_way::finish_until(double time_s, const transfer_finished& finished) {
  std::vector<std::uint32_t> ended;
  std::erase_if(flows_, [&](const flow& f) {
    if (f.end_s() > time_s) return false;
    ended.push_back(f.number);
    place_of_[f.number] = nowhere;
    return true;
  });
  number_from(0);
  std::sort(ended.begin(), ended.end());
  for (const std::uint32_t number : ended) finished(number);
}

HETPLAN_INLINE const transfers_under_way::flow* transfers_under_way::find(std::uint32_t number) const {
  return number < place_of_.size() && place_of_[number] != nowhere ? &flows_[place_of_[number]] : nullptr;
}

HETPLAN_INLINE void transfers_under_way::number_from(std::size_t place) {
  for (; place < flows_.size(); ++place) place_of_[flows_[place].number] = static_cast<std::uint32_t>(place);
}

namespace detail {

HETPLAN_INLINE resource_load::resource_load(std::span<const resource> resources) : taken_(resources.size()) {
  for (const resource& r : resources) capacity_.push_back(r.capacity.value());
}

HETPLAN_INLINE std::optional<resource_load::excess> resource_load::exceeded_by(const transfers_under_way& flows) {
  std::fill(taken_.begin(), taken_.end(), 0);
  for (const auto& f : flows) {
    for (const resource_use& u : f.route) taken_[u.resource.index()] += u.weight * f.rate;
  }
  for (std::size_t r = 0; r < taken_.size(); ++r) {
    if (taken_[r] > capacity_[r] * (1 + too_much)) return excess{r, taken_[r], capacity_[r]};
  }
  return std::nullopt;
}

}  // namespace detail

HETPLAN_INLINE prescribed_sharing::prescribed_sharing(const network& net, const prescribed& given)
    : rates_(given.rates), load_(net.resources()) {
  sort_by(rates_, &rate_change::at_s);
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
