// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/pass_size.hpp>

#include <algorithm>
#include <cmath>

namespace hetplan::adapt {

HETPLAN_INLINE double pipeline_time_s(std::span<const pass_time> parts, long long samples, double pass_samples) {
  double sum = 0, most = 0;
  for (const pass_time& t : parts) {
    sum += t.of(pass_samples);
    most = std::max(most, t.of(pass_samples));
  }
  return sum + (static_cast<double>(samples) / pass_samples - 1) * most;
}

HETPLAN_INLINE double best_pass_size(std::span<const pass_time> parts, long long samples) {
  const auto all = static_cast<double>(samples);
  double sum_s = 0, best = all;
  for (const pass_time& t : parts) sum_s += t.each_s;
  const auto offer = [&](double size) {
    if (std::isnan(size)) return;
    size = std::clamp(size, 1.0, std::max(all, 1.0));
    if (pipeline_time_s(parts, samples, size) < pipeline_time_s(parts, samples, best)) best = size;
  };
  for (auto it = parts.begin(); it != parts.end(); ++it) {
    offer(std::sqrt(all * it->fixed_s / (sum_s - it->each_s)));
    for (auto other = parts.begin(); other != it; ++other) offer((other->fixed_s - it->fixed_s) / (it->each_s - other->each_s));
  }
  return best;
}

}  // namespace hetplan::adapt
