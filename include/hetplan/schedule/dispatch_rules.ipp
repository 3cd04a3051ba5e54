// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/dispatch_rules.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include <hetplan/core/error.hpp>

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

}  // namespace hetplan::schedule
