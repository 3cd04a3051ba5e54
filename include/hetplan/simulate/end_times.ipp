// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/end_times.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::detail {

HETPLAN_INLINE void end_times::find_due(double time, std::vector<std::uint32_t>& due) {
  if (earliest() > time) return;
  if (played_) return find_due_below(1, time, due);
  for (std::uint32_t f = 0; f < flows_; ++f) {
    if (node_[leaves_ + f] <= time) due.push_back(f);
  }
}

HETPLAN_INLINE void end_times::find_due_below(std::size_t node, double time, std::vector<std::uint32_t>& due) const {
  if (node_[node] > time) return;
  if (node >= leaves_) return due.push_back(static_cast<std::uint32_t>(node - leaves_));
  find_due_below(2 * node, time, due);
  find_due_below(2 * node + 1, time, due);
}

HETPLAN_INLINE void end_times::play() {
  const auto winner = [&](std::size_t n) { return std::min(node_[2 * n], node_[2 * n + 1]); };
  if (flows_ <= few) {
    double first = never;
    for (std::size_t f = 0; f < flows_; ++f) first = std::min(first, node_[leaves_ + f]);
    node_[1] = first;
    played_ = false;
  } else if (!played_ || 4 * changed_.size() > flows_) {
    for (std::size_t n = leaves_ - 1; n > 0; --n) node_[n] = winner(n);
    played_ = true;
  } else {
    for (const std::uint32_t f : changed_) {
      for (std::size_t n = (leaves_ + f) / 2; n > 0 && node_[n] != winner(n); n /= 2) node_[n] = winner(n);
    }
  }
  changed_.clear();
  known_ = true;
}

HETPLAN_INLINE void end_times::grow() {
  const std::vector<double> times(node_.begin() + static_cast<std::ptrdiff_t>(leaves_), node_.end());
  leaves_ *= 2;
  node_.assign(2 * leaves_, never);
  std::copy(times.begin(), times.end(), node_.begin() + static_cast<std::ptrdiff_t>(leaves_));
  known_ = played_ = false;
}

}  // namespace HETPLAN_NAMESPACE::detail
