// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/order_beam.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include <hetplan/core/keyed.hpp>

namespace hetplan::schedule::detail {

HETPLAN_INLINE order_outlook::order_outlook(const tick_table& t, order_goal goal)
    : t_(&t), goal_(goal), next_forward_(t.stages.size()), next_gradient_(t.stages.size()), forward_end_(t.stages.size()),
      backward_end_(t.stages.size()) {}

HETPLAN_INLINE ticks order_outlook::zero(const partial_orders& state, std::size_t device) const {
  if (goal_ == order_goal::makespan) return 0;
  return std::min(state.began(device), std::max(t_->devices[device].first_start, state.free_at(device)));
}

HETPLAN_INLINE ticks order_outlook::forwards_that_fit(const partial_orders& state, std::size_t stage) const {
  const tick_table::stage& s = t_->stages[stage];
  const ticks most = static_cast<ticks>(t_->m - state.done(stage, 0));
  const double room = t_->devices[s.device].memory - static_cast<double>(state.done(stage, 0) - state.done(stage, 1)) * s.activation;
  if (room >= static_cast<double>(most) * s.activation) return most;
  return std::max(ticks{0}, static_cast<ticks>(std::floor(room / s.activation)));
}

HETPLAN_INLINE ticks order_outlook::idle_until(const partial_orders& state, std::size_t device) const {
  ticks first = never;
  for (const std::size_t s : t_->devices[device].stages) {
    if (state.done(s, 2) < state.done(s, 0)) return 0;
    first = std::min(first, next_forward_[s]);
  }
  return first;
}

HETPLAN_INLINE ticks order_outlook::bound(const partial_orders& state, ticks* sum) {
  const tick_table& t = *t_;
  const std::size_t n = t.stages.size();
  const ticks m = static_cast<ticks>(t.m);
  // Earliest next forward of each stage, and earliest end of its last forward.
  for (std::size_t s = 0; s < n; ++s) {
    const tick_table::stage& x = t.stages[s];
    const ticks mine = static_cast<ticks>(state.done(s, 0));
    if (mine == m) {
      next_forward_[s] = never;
      forward_end_[s] = state.end_of(s, 0, t.m - 1);
      continue;
    }
    ticks next = state.free_at(x.device), last = 0;
    for (const auto& e : x.ahead) {
      const ticks theirs = static_cast<ticks>(state.done(e.stage, 0));
      const ticks f = t.stages[e.stage].length[0];
      next = std::max(next, e.delay + (theirs > mine ? state.end_of(e.stage, 0, static_cast<std::size_t>(mine))
                                                     : next_forward_[e.stage] + (mine - theirs + 1) * f));
      last = std::max(last, forward_end_[e.stage] + e.delay + x.length[0]);
    }
    next_forward_[s] = next;
    forward_end_[s] = std::max(last, next + (m - mine) * x.length[0]);
  }
  // The same for gradients, from the last stage to the first.
  for (std::size_t s = n; s-- > 0;) {
    const tick_table::stage& x = t.stages[s];
    const ticks mine = static_cast<ticks>(state.done(s, 1));
    if (mine == m) {
      next_gradient_[s] = never;
      backward_end_[s] = state.end_of(s, 1, t.m - 1);
      continue;
    }
    ticks next = state.free_at(x.device), last = forward_end_[s] + x.length[1];
    const ticks forwards = static_cast<ticks>(state.done(s, 0));
    if (forwards <= mine) next = std::max(next, next_forward_[s] + (mine - forwards + 1) * x.length[0]);
    for (const auto& e : x.behind) {
      const ticks theirs = static_cast<ticks>(state.done(e.stage, 1));
      const ticks b = t.stages[e.stage].length[1];
      next = std::max(next, e.delay + (theirs > mine ? state.end_of(e.stage, 1, static_cast<std::size_t>(mine))
                                                     : next_gradient_[e.stage] + (mine - theirs + 1) * b));
      last = std::max(last, backward_end_[e.stage] + e.delay + x.length[1]);
    }
    next_gradient_[s] = next;
    // Work of the device before its last gradient. Forwards that do not fit before the next gradient come after it.
    ticks before = std::max(state.free_at(x.device), idle_until(state, x.device));
    for (const auto& [u, gradients] : t.before_last_gradient[s]) {
      before += (m - static_cast<ticks>(state.done(u, 0))) * t.stages[u].length[0];
      if (gradients) before += (m - static_cast<ticks>(state.done(u, 1))) * t.stages[u].length[1];
    }
    ticks late = 0;
    if (t.devices[x.device].stages.size() == 1) {
      const ticks fit = forwards_that_fit(state, s), beyond = m - forwards - fit;
      if (beyond > 0) {
        late = beyond * x.length[0];
        // With at most `at_once` microbatches in flight, a forward waits for the gradient `at_once` microbatches before, and that one for
        // its own forward.
        const ticks at_once = forwards + fit - mine, rounds = (beyond - 1) / at_once + 1, first = m - 1 - rounds * at_once;
        last = std::max(last, next + (first - mine + 1) * x.length[1] + rounds * (x.window + x.length[1]));
      }
    }
    backward_end_[s] = std::max({last, before, next + (m - mine) * x.length[1] + late});
  }
  ticks worst = 0, total = 0;
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    const tick_table::device& x = t.devices[d];
    if (x.stages.empty()) continue;
    ticks left = 0, fill = 0, next = never, first = never;
    double held = 0;
    for (const std::size_t s : x.stages) {
      const tick_table::stage& y = t.stages[s];
      const ticks f = static_cast<ticks>(state.done(s, 0)), b = static_cast<ticks>(state.done(s, 1)),
                  w = static_cast<ticks>(state.done(s, 2));
      left += (m - f) * y.length[0] + (m - b) * y.length[1] + (m - w) * y.length[2];
      fill += (b - w) * y.length[2];
      next = std::min(next, next_gradient_[s]);
      first = std::min(first, next_forward_[s]);
      held += static_cast<double>(f - b) * y.activation;  // pending weight gradients free their memory while they fill the gap
    }
    ticks ready = state.free_at(d);
    if (left > 0) {
      if (fill == 0) ready = std::max(ready, std::min(next, first));
      if (next < never) {
        // Bound on the time of forwards before the next gradient: as many as memory admits, the longest per activation first.
        const double room_left = x.memory - held;
        ticks forwards = 0;
        if (x.stages.size() == 1) {
          const std::size_t s = x.stages.front();
          forwards = t.stages[s].length[0] * forwards_that_fit(state, s);
        } else {
          ticks all = 0;
          double rate = 0;
          bool free_of_memory = false;
          for (const std::size_t s : x.stages) {
            const tick_table::stage& y = t.stages[s];
            all += (m - static_cast<ticks>(state.done(s, 0))) * y.length[0];
            if (y.length[0] == 0) continue;
            if (y.activation > 0) rate = std::max(rate, static_cast<double>(y.length[0]) / y.activation);
            else free_of_memory = true;
          }
          const double most = std::max(0.0, room_left) * rate;
          forwards = free_of_memory || !(most < static_cast<double>(all)) ? all : static_cast<ticks>(most) + 1;
        }
        ready = std::max(ready, next - fill - forwards);
      }
    }
    ticks end = ready + left;
    for (const std::size_t s : x.stages) {
      const tick_table::stage& y = t.stages[s];
      if (!state.complete(s, 2)) end = std::max(end, backward_end_[s] + y.length[2]);
    }
    const ticks come_to = end - zero(state, d);
    worst = std::max(worst, come_to);
    total += come_to;
  }
  if (sum != nullptr) *sum = total;
  return worst;
}

HETPLAN_INLINE order_value valued(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence, ticks target) {
  partial_orders state(t);
  for (const partial_orders::task& a : sequence) {
    state.give(a, std::max(state.arrival(a.stage, a.what), state.free_at(t.stages[a.stage].device)));
  }
  order_value v{0, 0};
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    if (t.devices[d].stages.empty()) continue;
    const ticks mine = state.free_at(d) - (goal == order_goal::makespan ? 0 : state.began(d));
    v.goal = std::max(v.goal, mine);
    v.excess += std::max(ticks{0}, mine - target);
  }
  return v;
}

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
    key_index seen;
    next.clear();
    for (const child& x : children) {
      if (next.size() == width) break;
      if (!seen.insert({x.hash})) continue;
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
