// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/round_search.hpp>

#include <algorithm>
#include <utility>

namespace HETPLAN_NAMESPACE::schedule::detail {

HETPLAN_INLINE std::vector<round_options> round_grid(const tick_table& t) {
  std::vector<round_options> grid;
  for (const bool one_more : {false, true}) {
    const std::vector<int> warmup = filling_warmup(t, one_more);
    for (const bool skip : {false, true}) {
      for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
        grid.push_back({warmup, std::vector<gap_rule>(t.devices.size(), g), std::vector<bool>(t.stages.size(), skip)});
      }
    }
  }
  return grid;
}

HETPLAN_INLINE found_orders best_rounds(const tick_table& t, order_goal goal) {
  found_orders best;
  for (const round_options& o : round_grid(t)) {
    auto sequence = orders_in_rounds(t, o);
    const ticks value = value_of(t, goal, sequence);
    if (value < best.value) best = {std::move(sequence), value};
  }
  return best;
}

HETPLAN_INLINE found_orders searched_rounds(const tick_table& t, order_goal goal, ticks target, long long& steps) {
  found_orders best;
  for (round_options now : round_grid(t)) {
    if (steps <= 0 || best.value <= target) break;
    order_value reached{never, never};
    const auto better = [&](round_options&& o) {
      auto sequence = orders_in_rounds(t, o);
      steps -= static_cast<long long>(sequence.size());
      const order_value v = valued(t, goal, sequence, target);
      if (v.goal < best.value) best = {std::move(sequence), v.goal};
      if (!(v < reached)) return false;
      reached = v;
      now = std::move(o);
      return true;
    };
    better(round_options(now));
    const int m = static_cast<int>(t.m);
    for (bool moved = true; moved && steps > 0 && best.value > target;) {
      moved = false;
      const auto any_left = [&] { return steps > 0 && best.value > target; };
      for (std::size_t s = 0; s < t.stages.size(); ++s) {
        for (const int by : {-1, 1}) {
          for (const std::size_t first : {s, std::size_t{0}}) {
            if (!any_left()) return best;
            round_options o = now;
            for (std::size_t u = first; u <= s; ++u) o.warmup[u] = std::clamp(o.warmup[u] + by, 1, m);
            moved = better(std::move(o)) || moved;
          }
        }
      }
      for (std::size_t d = 0; d < t.devices.size(); ++d) {
        for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
          if (!any_left()) return best;
          round_options o = now;
          o.gaps[d] = g;
          moved = better(std::move(o)) || moved;
        }
      }
      for (std::size_t s = 0; s < t.stages.size(); ++s) {
        if (!any_left()) return best;
        round_options o = now;
        o.skip[s] = !o.skip[s];
        moved = better(std::move(o)) || moved;
      }
    }
  }
  return best;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
