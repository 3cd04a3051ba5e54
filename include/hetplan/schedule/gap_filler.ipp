// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/gap_filler.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::schedule::detail {

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
  while (a.what == 0 && !state_.has_room(a.stage, room::for_idle_later_stages)) {
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

}  // namespace HETPLAN_NAMESPACE::schedule::detail
