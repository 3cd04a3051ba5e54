// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/transfers_under_way.hpp>

#include <algorithm>
#include <limits>
#include <utility>

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

}  // namespace hetplan
