// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/end_times.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE void end_times::set(std::uint32_t flow, double time) {
  if (flow >= leaves_) grow(flow + std::size_t{1});
  std::size_t n = leaves_ + flow;
  node_[n] = time;
  while (n > 1) {
    n /= 2;
    const double earlier = std::min(node_[2 * n], node_[2 * n + 1]);
    if (node_[n] == earlier) return;
    node_[n] = earlier;
  }
}

HETPLAN_INLINE void end_times::take_until(double time, std::vector<std::uint32_t>& ended) {
  while (earliest() <= time) {
    std::size_t n = 1;
    while (n < leaves_) n = node_[2 * n] <= node_[2 * n + 1] ? 2 * n : 2 * n + 1;
    ended.push_back(static_cast<std::uint32_t>(n - leaves_));
    set(ended.back(), never);
  }
}

HETPLAN_INLINE void end_times::grow(std::size_t flows) {
  const std::vector<double> times(node_.begin() + static_cast<std::ptrdiff_t>(leaves_), node_.end());
  while (leaves_ < flows) leaves_ *= 2;
  node_.assign(2 * leaves_, never);
  std::copy(times.begin(), times.end(), node_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  for (std::size_t n = leaves_ - 1; n > 0; --n) node_[n] = std::min(node_[2 * n], node_[2 * n + 1]);
}

}  // namespace HETPLAN_NAMESPACE::detail
