// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/round_orders.hpp>

#include <algorithm>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

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

/// Orders as they grow, round by round.
class rounds {
 public:
  rounds(const tick_table& t, const round_options& options)
      : t_(t), options_(options), state_(t), idle_(t.devices.size(), 0) {}

  [[nodiscard]] std::vector<partial_orders::task> run() {
    const std::size_t n = t_.stages.size();
    for (std::uint32_t s = 0; s < n; ++s) {
      while (state_.done(s, 0) < static_cast<std::size_t>(std::min<int>(options_.warmup[s], static_cast<int>(t_.m)))) {
        if (!place({s, 0})) break;
      }
    }
    while (state_.left() > 0) {
      const std::size_t before = state_.left();
      for (std::uint32_t s = static_cast<std::uint32_t>(n); s-- > 0;) place({s, 1});
      for (std::uint32_t s = 0; s < n; ++s) {
        if (!may_wait(s)) place({s, 0});
      }
      if (state_.left() < before) continue;
      for (std::uint32_t s = 0; s < n; ++s) place({s, 0});
      if (state_.left() < before) continue;
      for (std::size_t d = 0; d < t_.devices.size(); ++d) {
        while (weight(d)) {
        }
      }
      HETPLAN_ASSERT(state_.left() < before);
    }
    return std::move(sequence_);
  }

 private:
  /// Would a gradient be there before this forward ends, and has the stage one to spare?
  [[nodiscard]] bool may_wait(std::uint32_t s) const {
    if (!options_.skip || state_.complete(s, 0) || t_.stages[s].behind.empty()) return false;
    ticks next = 0;
    for (const auto& e : t_.stages[s].behind) {
      if (state_.done(s, 0) <= state_.done(e.stage, 0) + 1) return false;
      next = std::max(next, state_.free_at(t_.stages[e.stage].device) + t_.stages[e.stage].length[1] + e.delay);
    }
    return state_.free_at(t_.stages[s].device) + t_.stages[s].length[0] > next;
  }

  bool place(partial_orders::task a) {
    const std::size_t d = t_.stages[a.stage].device;
    const ticks arrival = state_.arrival(a.stage, a.what);
    if (arrival == never) return false;
    while (a.what == 0 && !state_.has_room(a.stage, room::for_idle_later_stages)) {
      if (!weight(d)) return false;
    }
    for (;;) {
      const ticks gap = arrival - state_.free_at(d);
      if (gap <= 0 || state_.began(d) == never) break;
      const ticks w = next_weight(d);
      if (w == never || (w > gap && !fills(d, gap))) break;
      weight(d);
    }
    const ticks start = std::max(arrival, state_.free_at(d));
    if (state_.began(d) != never) idle_[d] += start - state_.free_at(d);
    state_.give(a, start);
    sequence_.push_back(a);
    return true;
  }

  [[nodiscard]] bool fills(std::size_t d, ticks gap) const {
    if (options_.gaps[d] != gap_rule::largest) return options_.gaps[d] == gap_rule::any;
    for (std::size_t other = 0; other < idle_.size(); ++other) {
      if (other != d && idle_[other] >= idle_[d] + gap) return false;
    }
    return true;
  }

  [[nodiscard]] const std::size_t* weight_stage(std::size_t d) const {
    const std::size_t* best = nullptr;
    for (const std::size_t& s : t_.devices[d].stages) {
      if (state_.done(s, 2) < state_.done(s, 1) && (best == nullptr || state_.done(s, 2) < state_.done(*best, 2))) best = &s;
    }
    return best;
  }
  [[nodiscard]] ticks next_weight(std::size_t d) const {
    const std::size_t* s = weight_stage(d);
    return s == nullptr ? never : t_.stages[*s].length[2];
  }
  bool weight(std::size_t d) {
    const std::size_t* s = weight_stage(d);
    if (s == nullptr) return false;
    const partial_orders::task a{static_cast<std::uint32_t>(*s), 2};
    state_.give(a, state_.free_at(d));
    sequence_.push_back(a);
    return true;
  }

  const tick_table& t_;
  const round_options& options_;
  partial_orders state_;
  std::vector<ticks> idle_;
  std::vector<partial_orders::task> sequence_;
};

HETPLAN_INLINE std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options) {
  return rounds(t, options).run();
}

HETPLAN_INLINE ticks value_of(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence) {
  partial_orders state(t);
  for (const partial_orders::task& a : sequence) {
    state.give(a, std::max(state.arrival(a.stage, a.what), state.free_at(t.stages[a.stage].device)));
  }
  ticks worst = 0;
  for (std::size_t d = 0; d < t.devices.size(); ++d) {
    if (t.devices[d].stages.empty()) continue;
    worst = std::max(worst, state.free_at(d) - (goal == order_goal::makespan ? 0 : state.began(d)));
  }
  return worst;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
