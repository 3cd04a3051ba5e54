// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/contiguous_partition.hpp>

#include <cmath>

namespace hetplan::place {

HETPLAN_INLINE std::vector<double> bound_weights(std::span<const int> devices, const std::vector<std::vector<double>>& work) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t kinds = devices.size(), nodes = work.empty() ? 0 : work[0].size();
  std::vector<double> weight(kinds, inf);
  std::vector<std::size_t> present;
  for (std::size_t k = 0; k < kinds; ++k) {
    if (devices[k] > 0) present.push_back(k);
  }
  if (present.empty()) return std::vector<double>(kinds, 0);
  for (const std::size_t k : present) weight[k] = 1;
  const auto value = [&] {
    double sum = 0, share = 0;
    for (std::size_t v = 0; v < nodes; ++v) {
      double least = inf;
      for (const std::size_t k : present) least = std::min(least, work[k][v] == inf ? inf : weight[k] * work[k][v]);
      sum += least;
    }
    for (const std::size_t k : present) share += devices[k] * weight[k];
    return share > 0 ? sum / share : 0;
  };
  double best = value();
  bool better = present.size() > 1;
  for (int round = 0; better && round < 20; ++round) {
    better = false;
    for (const std::size_t k : present) {
      // Between the ratios of two nodes the bound is a quotient of linear functions, so the best weight is one of the ratios.
      std::vector<double> candidates{0};
      for (std::size_t v = 0; v < nodes; ++v) {
        for (const std::size_t other : present) {
          const double ratio = weight[other] * work[other][v] / work[k][v];
          if (other != k && ratio > 0 && ratio < inf) candidates.push_back(ratio);
        }
      }
      std::sort(candidates.begin(), candidates.end());
      candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
      const double before = weight[k];
      // The bound is concave over linear in the weight: it rises, then falls.
      std::size_t low = 0, high = candidates.size() - 1;
      const auto value_at = [&](std::size_t c) {
        weight[k] = candidates[c];
        return value();
      };
      while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (value_at(middle) < value_at(middle + 1)) low = middle + 1;
        else high = middle;
      }
      if (const double now = value_at(low); now > best * (1 + 1e-12)) {
        best = now;
        better = present.size() > 2;
      } else {
        weight[k] = before;
      }
    }
  }
  double share = 0;
  for (const std::size_t k : present) share += devices[k] * weight[k];
  for (const std::size_t k : present) weight[k] /= share;
  return weight;
}

}  // namespace hetplan::place

namespace hetplan::place::detail {

HETPLAN_INLINE device_counts::device_counts(std::span<const int> devices, const std::vector<std::vector<double>>& work) {
  for (const int n : devices) {
    devices_.push_back(std::min(n, static_cast<int>(work[0].size())));  // at most one device per node
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
