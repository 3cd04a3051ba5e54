// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_beam.hpp>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <unordered_set>

namespace hetplan::schedule::detail {

HETPLAN_INLINE void conflicting_tasks(const partial_orders& state, room r, std::vector<partial_orders::task>& tasks,
                                      std::vector<ticks>& starts, const std::vector<int>& warmup) {
  const auto out_of_turn = [&](std::size_t s, std::size_t what) {
    if (warmup.empty() || what == 2) return false;
    const std::size_t due = std::min(state.table().m, static_cast<std::size_t>(warmup[s]) + state.done(s, 1));
    return (what == 0) != (state.done(s, 0) < due);
  };
  const tick_table& t = state.table();
  tasks.clear();
  starts.clear();
  ticks first_end = never;
  std::size_t device = 0;
  for (std::uint32_t s = 0; s < t.stages.size(); ++s) {
    for (std::uint32_t what = 0; what < 3; ++what) {
      if (out_of_turn(s, what)) continue;
      const ticks start = state.earliest({s, what}, r);
      if (start < never && start + t.stages[s].length[what] < first_end) {
        first_end = start + t.stages[s].length[what];
        device = t.stages[s].device;
      }
    }
  }
  if (first_end == never) return;
  for (const std::size_t s : t.devices[device].stages) {
    for (std::uint32_t what = 0; what < 3; ++what) {
      const partial_orders::task a{static_cast<std::uint32_t>(s), what};
      if (out_of_turn(s, what)) continue;
      const ticks start = state.earliest(a, r);
      if (start < first_end || (start == first_end && t.stages[s].length[what] == 0)) {
        tasks.push_back(a);
        starts.push_back(start);
      }
    }
  }
}

HETPLAN_INLINE found_orders beam_search(const tick_table& t, order_goal goal, std::size_t width, ticks better_than,
                                        const std::vector<int>& warmup) {
  struct given {
    std::uint32_t before;
    partial_orders::task task;
  };
  struct kept {
    partial_orders state;
    std::uint32_t last;
  };
  struct child {
    ticks bound, sum;
    std::uint64_t hash;
    std::uint32_t parent;
    partial_orders::task task;
    ticks start;
  };
  constexpr std::uint32_t none = ~std::uint32_t{0};
  order_outlook outlook(t, goal);
  std::vector<given> trail;
  std::vector<kept> beam{{partial_orders(t), none}}, next;
  std::vector<child> children;
  std::vector<partial_orders::task> tasks;
  std::vector<ticks> starts;
  for (std::size_t step = t.tasks(); step > 0; --step) {
    children.clear();
    for (std::uint32_t i = 0; i < beam.size(); ++i) {
      partial_orders& state = beam[i].state;
      conflicting_tasks(state, room::for_idle_stages, tasks, starts, warmup);
      for (std::size_t c = 0; c < tasks.size(); ++c) {
        const auto undo = state.give(tasks[c], starts[c]);
        child x{0, 0, state.counts_hash(), i, tasks[c], starts[c]};
        x.bound = outlook.bound(state, &x.sum);
        for (std::size_t d = 0; d < t.devices.size(); ++d)
          x.hash = (x.hash ^ static_cast<std::uint64_t>(state.free_at(d))) * 0x9e3779b97f4a7c15U;
        if (x.bound < better_than) children.push_back(x);
        state.take_back(tasks[c], undo);
      }
    }
    std::sort(children.begin(), children.end(), [](const child& a, const child& b) {
      return std::tie(a.bound, a.sum, a.parent, a.task.stage, a.task.what) < std::tie(b.bound, b.sum, b.parent, b.task.stage, b.task.what);
    });
    std::unordered_set<std::uint64_t> seen;
    next.clear();
    for (const child& x : children) {
      if (next.size() == width) break;
      if (!seen.insert(x.hash).second) continue;
      next.push_back({beam[x.parent].state, static_cast<std::uint32_t>(trail.size())});
      next.back().state.give(x.task, x.start);
      trail.push_back({beam[x.parent].last, x.task});
    }
    beam.swap(next);
    if (beam.empty()) return {};
  }
  found_orders best;
  best.value = outlook.bound(beam.front().state);
  for (std::uint32_t i = beam.front().last; i != none; i = trail[i].before) best.sequence.push_back(trail[i].task);
  std::reverse(best.sequence.begin(), best.sequence.end());
  return best;
}

}  // namespace hetplan::schedule::detail
