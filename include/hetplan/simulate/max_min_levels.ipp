// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/max_min_levels.hpp>

#include <functional>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE bool max_min_levels::update(std::span<const std::uint32_t> changed, const std::vector<fluid_flow>& flows,
                                           const std::vector<fluid_resource>& resources, std::size_t most) {
  queue_.clear();
  looks_ = 0;
  reached_.assign(changed.begin(), changed.end());
  for (const std::uint32_t r : changed) look_at(r, flows, resources[r]);
  while (!queue_.empty() && looks_ <= most) {
    const auto [smaller, r] = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
    queue_.pop_back();
    if (level_[r] == next_[r] || smaller != std::min(level_[r], next_[r])) continue;
    level_[r] = next_[r];
    reached_.push_back(r);
    beside_.clear();
    seen_[r] = 1;
    for (const std::uint32_t f : resources[r].flows) {
      for (const resource_use& u : flows[f].via) {
        const auto other = static_cast<std::uint32_t>(u.resource.index());
        if (next_[other] <= smaller || seen_[other]) continue;  // smaller levels depend on neither the old nor the new one
        seen_[other] = 1;
        beside_.push_back(other);
      }
    }
    seen_[r] = 0;
    for (const std::uint32_t other : beside_) {
      seen_[other] = 0;
      look_at(other, flows, resources[other]);
    }
  }
  return queue_.empty();
}

HETPLAN_INLINE void max_min_levels::look_at(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s) {
  const double level = level_beside_others(r, flows, s);
  if (level == next_[r]) return;
  next_[r] = level;
  if (level == level_[r]) return;
  queue_.emplace_back(std::min(level, level_[r]), r);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

HETPLAN_INLINE double max_min_levels::level_beside_others(std::uint32_t r, const std::vector<fluid_flow>& flows, const fluid_resource& s) {
  if (s.flows.empty()) return none;
  looks_ += s.flows.size();
  limited_.clear();
  double weight = 0, smallest = none;
  for (const std::uint32_t f : s.flows) {
    part mine{none, 0};
    for (const resource_use& u : flows[f].via) {
      if (u.resource.index() == r) mine.weight = u.weight;
      else mine.rate = std::min(mine.rate, level_[u.resource.index()]);
    }
    weight += mine.weight;
    if (mine.rate == none) continue;
    limited_.push_back(mine);
    smallest = std::min(smallest, mine.rate);
  }
  double left = s.capacity, level = 0;
  if (left / weight <= smallest) return left / weight;
  std::sort(limited_.begin(), limited_.end(),
            [](const part& a, const part& b) { return a.rate != b.rate ? a.rate < b.rate : a.weight < b.weight; });
  for (const part& p : limited_) {
    const double share = left / weight;
    if (share <= p.rate) return std::max(level, share);
    left -= p.weight * p.rate;
    weight -= p.weight;
    level = p.rate;
  }
  return limited_.size() == s.flows.size() ? none : std::max(level, left / weight);  // rounding may not lower it
}

}  // namespace HETPLAN_NAMESPACE::detail
