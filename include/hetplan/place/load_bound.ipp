// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/load_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

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
      // Between two nodes' ratios the bound is a quotient of linear functions: it is largest at one of them.
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
      // Concave over linear: it rises, then falls.
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
