// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/interleaved_orders.hpp>

#include <algorithm>
#include <cstdint>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE std::vector<std::vector<detail::partial_orders::task>> detail::interleaved_passes(const tick_table& t) {
  const std::size_t p = t.devices.size(), n = t.stages.size();
  if (p == 0 || n % p != 0) return {};
  for (std::size_t s = 0; s < n; ++s) {
    const auto& ahead = t.stages[s].ahead;
    if (t.stages[s].device != s % p || ahead.size() != (s > 0 ? 1U : 0U) || (s > 0 && ahead.front().stage != s - 1)) return {};
  }
  const std::size_t chunks = n / p;
  std::vector<std::vector<partial_orders::task>> passes(p);
  for (std::size_t d = 0; d < p; ++d) {
    // The chunk of each pass: group by group, in the order of the stages, against it for gradients.
    std::vector<std::uint32_t> order;
    for (std::size_t first = 0; first < t.m; first += p) {
      for (std::size_t c = 0; c < chunks; ++c) order.insert(order.end(), std::min(p, t.m - first), static_cast<std::uint32_t>(c));
    }
    const auto forward = [&](std::size_t i) { passes[d].push_back({static_cast<std::uint32_t>(d + order[i] * p), 0}); };
    const auto backward = [&](std::size_t i) { passes[d].push_back({static_cast<std::uint32_t>(d + (chunks - 1 - order[i]) * p), 1}); };
    const std::size_t warmup = std::min(order.size(), chunks == 1 ? p - d - 1 : 2 * (p - d - 1) + (chunks - 1) * p);
    for (std::size_t i = 0; i < warmup; ++i) forward(i);
    for (std::size_t i = warmup; i < order.size(); ++i) {
      forward(i);
      backward(i - warmup);
    }
    for (std::size_t i = order.size() - warmup; i < order.size(); ++i) backward(i);
  }
  return passes;
}

HETPLAN_INLINE orders_by_device interleaved_orders(const pipeline_times& p, bool split) {
  check(p);
  const detail::tick_table t(p);
  const auto passes = detail::interleaved_passes(t);
  if (passes.empty()) throw invalid_input("interleaved orders: device d must hold stages d, d + devices, ... of a chain");
  std::vector<detail::partial_orders::task> sequence;
  for (const auto& of_device : passes) {
    for (const auto& a : of_device) {
      sequence.push_back(a);
      if (a.what == 1 && split) sequence.push_back({a.stage, 2});
    }
  }
  return detail::orders_of(t, sequence);
}

}  // namespace hetplan::schedule
