// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/contiguous_partition.hpp>

#include <cmath>

#include <hetplan/place/load_bound.hpp>

namespace hetplan::place::detail {

HETPLAN_INLINE device_counts::device_counts(std::span<const int> devices, const std::vector<std::vector<double>>& work) {
  for (const int n : devices) {
    devices_.push_back(std::min(n, static_cast<int>(work[0].size())));  // no more than there can be parts
    stride_.push_back(states_);
    states_ *= static_cast<std::size_t>(devices_.back()) + 1;
    if (states_ > max_states) {
      throw invalid_input("ideal_dp: devices can be taken in more than " + std::to_string(max_states) +
                          " combinations; expected fewer devices or kinds");
    }
  }
  for (std::size_t s = 0; s < states_; ++s) {
    std::vector<int> left;
    for (std::size_t k = 0; k < devices_.size(); ++k) left.push_back(devices_[k] - taken(s, k));
    const std::vector<double> weight = bound_weights(left, work);
    std::vector<double>& least = least_.emplace_back(work.empty() ? 0 : work[0].size(), std::numeric_limits<double>::infinity());
    for (std::size_t k = 0; k < devices_.size(); ++k) {
      for (std::size_t v = 0; left[k] > 0 && v < least.size(); ++v) {
        if (std::isfinite(work[k][v])) least[v] = std::min(least[v], weight[k] * work[k][v]);
      }
    }
  }
}

HETPLAN_INLINE double device_counts::rest(std::size_t state, node_set done) const {
  double sum = 0;
  for (std::size_t v = 0; v < least_[state].size(); ++v) {
    if (!done.contains(v)) sum += least_[state][v];
  }
  return sum;
}

HETPLAN_INLINE int device_counts::taken(std::size_t state, std::size_t kind) const {
  return static_cast<int>(state / stride_[kind] % (static_cast<std::size_t>(devices_[kind]) + 1));
}

}  // namespace hetplan::place::detail
