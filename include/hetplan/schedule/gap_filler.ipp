// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/gap_filler.hpp>

#include <algorithm>

#include <hetplan/core/error.hpp>

namespace hetplan::schedule::detail {

HETPLAN_INLINE std::size_t gap_filler::weight_stage(std::size_t device) const {
  const tick_table& t = state_.table();
  std::size_t best = t.stages.size();
  for (const std::size_t s : t.devices[device].stages) {
    if (state_.done(s, 2) < state_.done(s, 1) && (best == t.stages.size() || state_.done(s, 2) < state_.done(best, 2))) best = s;
  }
  return best;
}

HETPLAN_INLINE bool gap_filler::place_weight(std::size_t device) {
  const std::size_t s = weight_stage(device);
  if (s == state_.table().stages.size()) return false;
  const partial_orders::task a{static_cast<std::uint32_t>(s), 2};
  state_.give(a, state_.free_at(device));
  sequence_.push_back(a);
  return true;
}

HETPLAN_INLINE bool gap_filler::fills(std::size_t device, ticks gap) const {
  if ((*gaps_)[device] != gap_rule::largest) return (*gaps_)[device] == gap_rule::any;
  for (std::size_t other = 0; other < idle_.size(); ++other) {
    if (other != device && idle_[other] >= idle_[device] + gap) return false;
  }
  return true;
}

HETPLAN_INLINE bool gap_filler::place(partial_orders::task a) {
  const std::size_t d = state_.table().stages[a.stage].device;
  const ticks arrival = state_.arrival(a.stage, a.what);
  if (arrival == never) return false;
  while (a.what == 0 && !state_.has_room(a.stage, room::for_idle_stages)) {
    if (!place_weight(d)) return false;
  }
  const bool begun = state_.began(d) != never;
  while (begun && arrival > state_.free_at(d)) {
    const ticks gap = arrival - state_.free_at(d);
    const std::size_t s = weight_stage(d);
    if (s == state_.table().stages.size() || (state_.table().stages[s].length[2] > gap && !fills(d, gap))) break;
    place_weight(d);
  }
  const ticks start = std::max(arrival, state_.free_at(d));
  if (begun) idle_[d] += start - state_.free_at(d);
  state_.give(a, start);
  sequence_.push_back(a);
  return true;
}

HETPLAN_INLINE void gap_filler::finish() {
  for (std::size_t d = 0; d < state_.table().devices.size(); ++d) {
    while (place_weight(d)) {
    }
  }
}

HETPLAN_INLINE std::vector<partial_orders::task> filled_orders(const tick_table& t, std::vector<std::vector<partial_orders::task>> passes,
                                                               const std::vector<gap_rule>& gaps, bool pull) {
  gap_filler filler(t, gaps);
  const partial_orders& state = filler.state();
  // A forward of device d that fits between now and `until`, and into memory beside all that stands before it.
  const auto pulled = [&](std::size_t d, std::size_t from, ticks until) {
    double needed = state.held(d);
    for (std::size_t i = from; i < passes[d].size() && i < from + 2 * passes.size(); ++i) {
      const partial_orders::task a = passes[d][i];
      if (a.what != 0) continue;
      needed += t.stages[a.stage].activation;
      if (needed > t.devices[d].memory) break;
      const ticks start = state.earliest(a, room::for_idle_stages);
      if (i > from && start < never && start + state.length(a) <= until) return i;
    }
    return passes[d].size();
  };
  std::vector<std::size_t> next(passes.size(), 0);
  std::vector<bool> full(passes.size(), false);  // no room for the next forward, until a gradient goes before it
  for (;;) {
    std::size_t first = passes.size();
    ticks start = never;
    for (std::size_t d = 0; d < passes.size(); ++d) {
      if (next[d] == passes[d].size()) continue;
      const ticks arrival = filler.state().arrival(passes[d][next[d]].stage, passes[d][next[d]].what);
      if (arrival == never || full[d]) continue;
      const ticks mine = std::max(arrival, filler.state().free_at(d));
      if (mine < start) {
        start = mine;
        first = d;
      }
    }
    if (first < passes.size()) {
      if (pull && start > state.free_at(first) && state.began(first) != never) {
        if (const std::size_t i = pulled(first, next[first], start); i < passes[first].size()) {
          const auto at = [&](std::size_t k) { return passes[first].begin() + static_cast<std::ptrdiff_t>(k); };
          std::rotate(at(next[first]), at(i), at(i + 1));
        }
      }
      if (filler.place(passes[first][next[first]])) ++next[first];
      else full[first] = true;
      continue;
    }
    bool moved = false;
    for (std::size_t d = 0; d < passes.size() && !moved; ++d) {
      for (std::size_t i = next[d]; i < passes[d].size() && !moved; ++i) {
        const partial_orders::task a = passes[d][i];
        if (filler.state().arrival(a.stage, a.what) == never ||
            (full[d] && a.what == 0 && !filler.state().has_room(a.stage, room::for_idle_stages)))
          continue;
        const auto at = [&](std::size_t k) { return passes[d].begin() + static_cast<std::ptrdiff_t>(k); };
        std::rotate(at(next[d]), at(i), at(i + 1));
        full[d] = false;
        moved = true;
      }
    }
    if (!moved) break;
  }
  filler.finish();
  HETPLAN_ASSERT(filler.state().left() == 0);
  return filler.sequence();
}

}  // namespace hetplan::schedule::detail
