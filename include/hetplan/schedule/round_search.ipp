// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/round_search.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule::detail {

HETPLAN_INLINE std::vector<int> filling_warmup(const tick_table& t, bool one_more) {
  const std::size_t n = t.stages.size();
  std::vector<ticks> arrival(n, 0), ready(n, 0), slowest(n, 0);
  for (std::size_t s = 0; s < n; ++s) {
    slowest[s] = t.stages[s].length[0];
    for (const auto& e : t.stages[s].ahead) {
      arrival[s] = std::max(arrival[s], arrival[e.stage] + t.stages[e.stage].length[0] + e.delay);
      slowest[s] = std::max(slowest[s], slowest[e.stage]);
    }
  }
  std::vector<int> warmup(n, 1);
  const int m = static_cast<int>(t.m);
  for (std::size_t s = n; s-- > 0;) {
    const tick_table::stage& x = t.stages[s];
    ready[s] = arrival[s] + x.length[0];
    int least = 1;
    for (const auto& e : x.behind) {
      ready[s] = std::max(ready[s], ready[e.stage] + t.stages[e.stage].length[1] + e.delay);
      least = std::max(least, warmup[e.stage] + 1);
    }
    // The k-th forward ends k times the slowest after the first.
    const ticks gap = ready[s] - arrival[s] - x.length[0];
    const ticks fit = slowest[s] == 0 ? m : gap / slowest[s] + 1 + (one_more && gap % slowest[s] != 0 ? 1 : 0);
    const double room = t.devices[x.device].memory;
    const ticks held = x.activation > 0 && room < x.activation * m ? static_cast<ticks>(room / x.activation) : m;
    warmup[s] = static_cast<int>(std::max<ticks>(1, std::min<ticks>({std::max<ticks>(fit, least), held, m})));
    if (warmup[s] > fit) ready[s] = std::max(ready[s], arrival[s] + x.length[0] + (warmup[s] - 1) * slowest[s]);
  }
  for (std::size_t s = 0; s < n; ++s) {
    for (const auto& e : t.stages[s].ahead) {
      if (warmup[e.stage] < m) warmup[s] = std::max(1, std::min(warmup[s], warmup[e.stage] - 1));
    }
  }
  return warmup;
}

/// Would a gradient be there before the next forward of this stage ends, and has it one to spare?
HETPLAN_INLINE bool lets_out(const partial_orders& state, std::size_t stage) {
  const tick_table& t = state.table();
  if (state.complete(stage, 0) || t.stages[stage].behind.empty()) return false;
  ticks next = 0;
  for (const auto& e : t.stages[stage].behind) {
    if (state.done(stage, 0) <= state.done(e.stage, 0) + 1) return false;
    next = std::max(next, state.free_at(t.stages[e.stage].device) + t.stages[e.stage].length[1] + e.delay);
  }
  return state.free_at(t.stages[stage].device) + t.stages[stage].length[0] > next;
}

HETPLAN_INLINE std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options) {
  gap_filler filler(t, options.gaps);
  const partial_orders& state = filler.state();
  const auto n = static_cast<std::uint32_t>(t.stages.size());
  for (std::uint32_t s = 0; s < n; ++s) {
    while (state.done(s, 0) < std::min(t.m, static_cast<std::size_t>(options.warmup[s])) && filler.place({s, 0})) {
    }
  }
  for (std::size_t before = 0; before != state.left();) {
    before = state.left();
    for (std::uint32_t s = n; s-- > 0;) filler.place({s, 1});
    for (std::uint32_t s = 0; s < n; ++s) {
      if (!options.skip[s] || !lets_out(state, s)) filler.place({s, 0});
    }
    if (state.left() < before) continue;
    for (std::uint32_t s = 0; s < n; ++s) filler.place({s, 0});
  }
  filler.finish();
  HETPLAN_ASSERT(state.left() == 0);
  return filler.sequence();
}

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

}  // namespace hetplan::schedule::detail
