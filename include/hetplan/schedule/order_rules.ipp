// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_rules.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/schedule/round_search.hpp>
#include <hetplan/schedule/v_search.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE std::vector<detail::partial_orders::task> detail::dispatched_sequence(const tick_table& table, dispatch_rule rule) {
  partial_orders state(table);
  std::vector<partial_orders::task> sequence;
  const std::array<std::uint32_t, 3> rank = rule == dispatch_rule::compact ? std::array{0U, 1U, 2U} : std::array{1U, 0U, 2U};
  // The next task of each device, found anew where something has changed.
  struct choice {
    ticks start = never;
    partial_orders::task task = {};
  };
  std::vector<choice> next(table.devices.size());
  const auto choose = [&](std::size_t d) {
    std::tuple best{never, 0U, std::size_t{0}, std::uint32_t{0}};
    next[d] = {};
    for (const std::size_t s : table.devices[d].stages) {
      for (std::uint32_t what = 0; what < 3; ++what) {
        const partial_orders::task a{static_cast<std::uint32_t>(s), what};
        const ticks start = state.earliest(a, room::for_each_other_stage);
        const std::tuple key{start, rank[what], state.done(s, what), a.stage};
        if (start < never && key < best) {
          best = key;
          next[d] = {start, a};
        }
      }
    }
  };
  for (std::size_t d = 0; d < next.size(); ++d) choose(d);
  while (state.left() > 0) {
    const auto first = std::min_element(next.begin(), next.end(), [](const choice& a, const choice& b) { return a.start < b.start; });
    const auto [start, task] = *first;
    HETPLAN_ASSERT(start < never);
    state.give(task, start);
    sequence.push_back(task);
    choose(table.stages[task.stage].device);
    for (const auto& e : table.stages[task.stage].ahead) choose(table.stages[e.stage].device);
    for (const auto& e : table.stages[task.stage].behind) choose(table.stages[e.stage].device);
  }
  return sequence;
}

HETPLAN_INLINE orders_by_device dispatched_orders(const pipeline_times& p, dispatch_rule rule) {
  check(p);
  const detail::tick_table table(p);
  return detail::orders_of(table, detail::dispatched_sequence(table, rule));
}

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

HETPLAN_INLINE orders_by_device zero_bubble_orders(const pipeline_times& p, order_goal goal) {
  check(p);
  const detail::tick_table t(p);
  return detail::orders_of(t, detail::best_rounds(t, goal).sequence);
}

HETPLAN_INLINE orders_by_device v_orders(const pipeline_times& p, v_schedule v, order_goal goal) {
  check(p);
  if (!detail::is_v_shape(detail::tick_table(p))) {
    throw invalid_input("V orders: device d must hold stages d and 2 devices - 1 - d of a chain");
  }
  pipeline_times within = p;
  within.memory.resize(p.devices());
  for (std::size_t d = 0; d < p.devices(); ++d) {
    const double both = p.stages[d].activation + p.stages[p.stages.size() - 1 - d].activation;
    within.memory[d] = std::min(p.memory_of(d), both * static_cast<double>(held_by(v, p.devices())));
  }
  check(within);
  const detail::tick_table t(within);
  long long steps = 1000 * static_cast<long long>(t.tasks());
  return detail::orders_of(t, detail::searched_v(t, goal, 0, 1, steps).gaps_chosen.front().sequence);
}

}  // namespace hetplan::schedule
