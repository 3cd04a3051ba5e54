// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/stretched_orders.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include <hetplan/schedule/order_outlook.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

HETPLAN_INLINE found_orders stretched_orders(const tick_table& few, const tick_table& more, order_goal goal,
                                             const std::vector<partial_orders::task>& sequence) {
  found_orders best;
  if (more.m < few.m || sequence.empty()) return best;
  if (more.m == few.m) return {sequence, value_of(more, goal, sequence)};
  // In the order of their starts; a task never starts before what it needs.
  std::vector<std::pair<ticks, partial_orders::task>> timed;
  partial_orders state(few);
  for (const partial_orders::task& a : sequence) {
    const ticks start = std::max(state.arrival(a.stage, a.what), state.free_at(few.stages[a.stage].device));
    timed.emplace_back(start, a);
    state.give(a, start);
  }
  std::stable_sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<int> ahead(3 * few.stages.size(), 0);                      // against the first stage's forwards
  std::map<std::vector<int>, std::pair<std::size_t, std::size_t>> seen;  // position and forwards of the first stage
  std::size_t forwards = 0;
  std::vector<partial_orders::task> repeated;
  for (std::size_t i = 0; i <= timed.size(); ++i) {
    const auto [old, is_new] = seen.try_emplace(ahead, i, forwards);
    if (!is_new) {
      const auto [from, forwards_then] = old->second;
      old->second = {i, forwards};
      const std::size_t more_each = forwards - forwards_then;
      if (more_each > 0 && (more.m - few.m) % more_each == 0) {
        repeated.clear();
        const auto add = [&](std::size_t a, std::size_t b) {
          for (; a < b; ++a) repeated.push_back(timed[a].second);
        };
        add(0, from);
        for (std::size_t n = (more.m - few.m) / more_each + 1; n > 0; --n) add(from, i);
        add(i, timed.size());
        const ticks value = value_of(more, goal, repeated);
        if (value < best.value) best = {repeated, value};
      }
    }
    if (i == timed.size()) break;
    const partial_orders::task a = timed[i].second;
    if (a.stage == 0 && a.what == 0) {
      ++forwards;
      for (std::size_t k = 1; k < ahead.size(); ++k) --ahead[k];
    } else {
      ++ahead[3 * a.stage + a.what];
    }
  }
  return best;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
