// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_rules.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/sorting.hpp>

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
    // Forward k ends k times the slowest forward after the first one.
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

/// True if a stage more than one forward ahead would get its next gradient before the end of its next forward.
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

inline constexpr int slots_of_a_microbatch = 6;

/// Slots of a device's passes. Weight gradients fill the slots that the other passes leave.
struct v_passes {
  std::array<int, 4> at = {};       ///< forwards of the first and second stage, input gradients of the second and first
  std::array<int, 2> weights = {};  ///< weight gradients of the second and first stage
};

HETPLAN_INLINE std::array<int, 4> passes_of(const v_block& b, int device, int devices) {
  const int last = devices - 1;
  std::array<int, 4> at{};
  at[0] = device * b.step[0];
  at[1] = last * b.step[0] + b.turn[0] + (last - device) * b.step[1];
  at[2] = last * (b.step[0] + b.step[1]) + b.turn[0] + b.turn[1] + device * b.step[2];
  at[3] = last * (b.step[0] + b.step[1] + b.step[2]) + b.turn[0] + b.turn[1] + b.turn[2] + (last - device) * b.step[3];
  return at;
}

/// Returns the most half activations that a device holds under a repeated block, whose passes do not meet.
HETPLAN_INLINE int peak_of(const std::array<int, 4>& at) {
  std::array<bool, slots_of_a_microbatch> taken{};
  for (const int x : at) taken[static_cast<std::size_t>(x % slots_of_a_microbatch)] = true;
  std::array<int, 2> weights{};
  for (std::size_t i = 0; i < 2; ++i) {
    int w = at[2 + i] + 1;
    while (taken[static_cast<std::size_t>(w % slots_of_a_microbatch)]) ++w;
    taken[static_cast<std::size_t>(w % slots_of_a_microbatch)] = true;
    weights[i] = w;
  }
  // A forward takes two halves at its start; each gradient frees one at its end.
  int peak = 0;
  for (int now = 0; now < slots_of_a_microbatch; ++now) {
    const auto begun = [&](int x, int after) {  // runs of a pass with a period of six slots, up to a late time
      const int t = slots_of_a_microbatch * 1000 + now - after - x;
      return t < 0 ? 0 : t / slots_of_a_microbatch + 1;
    };
    peak = std::max(
        peak, 2 * (begun(at[0], 0) + begun(at[1], 0)) - begun(at[2], 1) - begun(at[3], 1) - begun(weights[0], 1) - begun(weights[1], 1));
  }
  return peak;
}

HETPLAN_INLINE bool is_v_shape(const tick_table& t) {
  const std::size_t n = t.stages.size();
  if (n != 2 * t.devices.size()) return false;
  for (std::size_t s = 0; s < n; ++s) {
    if (t.stages[s].device != std::min(s, n - 1 - s)) return false;
    if (t.stages[s].ahead.size() != (s > 0 ? 1U : 0U) || (s > 0 && t.stages[s].ahead.front().stage != s - 1)) return false;
  }
  return true;
}

HETPLAN_INLINE std::vector<v_block> v_blocks(std::size_t devices, double memory, std::size_t most) {
  const int p = static_cast<int>(devices);
  constexpr int widest = slots_of_a_microbatch;
  std::vector<v_block> blocks;
  v_block b;
  /// Calls next for every step and turn to the k-th pass with which it meets no earlier pass on any device.
  const auto for_each_way_to = [&](std::size_t k, const auto& next) {
    for (b.step[k] = 1; b.step[k] <= widest; ++b.step[k])
      for (b.turn[k - 1] = 1; b.turn[k - 1] <= widest; ++b.turn[k - 1]) {
        bool meets = false;
        for (int d = 0; d < p && !meets; ++d) {
          const std::array<int, 4> at = passes_of(b, d, p);
          for (std::size_t i = 0; i < k; ++i) meets = meets || (at[k] - at[i]) % slots_of_a_microbatch == 0;
        }
        if (!meets) next();
      }
  };
  const auto keep = [&] {
    int peak = 0;
    for (int d = 0; d < p; ++d) {
      peak = std::max(peak, peak_of(passes_of(b, d, p)));
      if (peak > 2 * memory) return;
    }
    b.slots = passes_of(b, 0, p)[3] + 1;
    b.peak = peak / 2.0;
    blocks.push_back(b);
  };
  for (b.step[0] = 1; b.step[0] <= widest; ++b.step[0]) for_each_way_to(1, [&] { for_each_way_to(2, [&] { for_each_way_to(3, keep); }); });
  sort_by(blocks, [](const v_block& x) { return std::tuple(x.slots, x.peak, x.step, x.turn); });
  if (blocks.size() > most) blocks.resize(most);
  return blocks;
}

HETPLAN_INLINE std::vector<partial_orders::task> orders_of_block(const tick_table& t, const v_block& block,
                                                                 const std::vector<gap_rule>& gaps, bool pull) {
  const int p = static_cast<int>(t.devices.size());
  std::vector<std::vector<partial_orders::task>> passes(t.devices.size());
  for (int d = 0; d < p; ++d) {
    const std::array<int, 4> at = passes_of(block, d, p);
    const auto first = static_cast<std::uint32_t>(d), second = static_cast<std::uint32_t>(2 * p - 1 - d);
    const std::array<partial_orders::task, 4> tasks{{{first, 0}, {second, 0}, {second, 1}, {first, 1}}};
    std::vector<std::pair<int, partial_orders::task>> timed;
    for (int k = 0; k < static_cast<int>(t.m); ++k) {
      for (std::size_t i = 0; i < tasks.size(); ++i) timed.emplace_back(slots_of_a_microbatch * k + at[i], tasks[i]);
    }
    sort_by(timed, [](const auto& x) { return x.first; });
    for (const auto& [slot, task] : timed) passes[static_cast<std::size_t>(d)].push_back(task);
  }
  return filled_orders(t, std::move(passes), gaps, pull);
}

HETPLAN_INLINE std::vector<partial_orders::task> zero_bubble_v(const tick_table& t, const std::vector<gap_rule>& gaps, bool pull) {
  const std::size_t p = t.devices.size();
  std::vector<std::vector<partial_orders::task>> passes(p);
  for (std::size_t d = 0; d < p; ++d) {
    std::array<std::size_t, 4> left{t.m, t.m, t.m, t.m};
    const auto first = static_cast<std::uint32_t>(d), second = static_cast<std::uint32_t>(2 * p - 1 - d);
    const std::array<partial_orders::task, 4> tasks{{{first, 0}, {second, 0}, {second, 1}, {first, 1}}};
    const auto pass = [&](std::size_t i) {
      if (left[i] == 0) return;
      --left[i];
      passes[d].push_back(tasks[i]);
    };
    for (std::size_t k = 0; k < 2 * (p - d) - 1; ++k) pass(0);
    for (std::size_t k = 0; k < d; ++k) {
      pass(1);
      pass(0);
    }
    for (std::size_t k = 0; k < p - d; ++k) {
      pass(1);
      pass(2);
    }
    while (left[1] > 0) {
      pass(0);
      pass(3);
      pass(1);
      pass(2);
    }
    while (left[3] > 0) {
      pass(3);
      pass(2);
    }
  }
  return filled_orders(t, std::move(passes), gaps, pull);
}

HETPLAN_INLINE v_orders searched_v(const tick_table& t, order_goal goal, ticks target, std::size_t most, long long& steps) {
  struct candidate {
    const v_block* block;  ///< null for ZB-V
    std::vector<gap_rule> gaps;
    bool pull;
    order_value value = {};
    std::vector<partial_orders::task> sequence = {};
  };
  constexpr std::size_t most_blocks = 64;
  double memory = std::numeric_limits<double>::infinity();
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    double largest = 0;
    for (const std::size_t s : t.devices[d].stages) largest = std::max(largest, t.stages[s].activation);
    if (largest > 0) memory = std::min(memory, t.devices[d].memory / largest);
  }
  const std::vector<v_block> blocks = v_blocks(t.devices.size(), std::min(memory, 2.0 * static_cast<double>(t.m)), most_blocks);
  const auto run = [&](candidate& c) {
    c.sequence = c.block == nullptr ? zero_bubble_v(t, c.gaps, c.pull) : orders_of_block(t, *c.block, c.gaps, c.pull);
    c.value = valued(t, goal, c.sequence, target);
    steps -= static_cast<long long>(c.sequence.size());
  };
  std::vector<candidate> all;
  for (std::size_t i = 0; i <= blocks.size() && steps > 0; ++i) {
    for (const bool pull : {false, true}) {
      for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
        all.push_back({i == 0 ? nullptr : &blocks[i - 1], std::vector<gap_rule>(t.devices.size(), g), pull});
        run(all.back());
      }
    }
  }
  const auto best_first = [&] {
    sort_by(all, &candidate::value);
    // Different rules often give the same orders.
    all.erase(std::unique(all.begin(), all.end(), [](const candidate& a, const candidate& b) { return a.sequence == b.sequence; }),
              all.end());
    if (all.size() > most) all.resize(most);
  };
  v_orders found;
  best_first();
  for (const candidate& c : all) found.as_they_are.push_back({c.sequence, c.value.goal});
  for (candidate& c : all) {
    for (bool moved = true; moved && c.value.goal > target;) {
      moved = false;
      for (std::size_t d = 0; d < t.devices.size(); ++d) {
        for (const gap_rule g : {gap_rule::whole, gap_rule::largest, gap_rule::any}) {
          if (steps <= 0 || c.gaps[d] == g) continue;
          candidate other = c;
          other.gaps[d] = g;
          run(other);
          if (!(other.value < c.value)) continue;
          c = std::move(other);
          moved = true;
        }
      }
    }
  }
  best_first();
  for (candidate& c : all) found.gaps_chosen.push_back({std::move(c.sequence), c.value.goal});
  return found;
}

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

HETPLAN_INLINE std::vector<detail::partial_orders::task> detail::dispatched_sequence(const tick_table& table, dispatch_rule rule) {
  partial_orders state(table);
  std::vector<partial_orders::task> sequence;
  const std::array<std::uint32_t, 3> rank = rule == dispatch_rule::compact ? std::array{0U, 1U, 2U} : std::array{1U, 0U, 2U};
  // The next task of each device, updated only where something has changed.
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
    // The chunk of each forward, group by group; gradients visit the chunks in reverse.
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
