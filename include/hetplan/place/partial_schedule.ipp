// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/partial_schedule.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/core/error.hpp>

namespace hetplan::place {

HETPLAN_INLINE partial_schedule::partial_schedule(const placement_table& t, const placement_rules& r)
    : table_(t), rules_(r), holds_(t, r.contention), memory_(t), end_s_(t.size(), 0), busy_(t.devices()), channel_busy_(holds_.size()),
      last_(t.devices(), none) {
  schedule_.device.assign(t.size(), none);
  schedule_.start_s.assign(t.size(), 0);
  if (r.copies == transfer_copies::per_device) sent_s_.assign(t.size() * t.devices(), -1);
}

HETPLAN_INLINE trial partial_schedule::try_on(std::size_t op, std::size_t device) {
  const double time_s = table_.time_s(op, device);
  const double data_s = bring_data(op, device);
  if (!std::isfinite(time_s) || !std::isfinite(data_s)) {
    constexpr double never = std::numeric_limits<double>::infinity();
    return {never, never, never};
  }
  const double start_s = busy_[device].earliest(data_s, time_s);
  return {data_s, start_s, start_s + time_s};
}

HETPLAN_INLINE void partial_schedule::place(std::size_t op, std::size_t device) {
  const trial at = try_on(op, device);
  HETPLAN_ASSERT(std::isfinite(at.end_s) && !placed(op));
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    const scheduled_transfer& x = arriving_[i];
    for (const std::size_t c : held_by(x.from, x.to, x.end_s > held_from_s_[i])) channel_busy_[c].add(held_from_s_[i], x.end_s);
    if (!sent_s_.empty()) sent_s_[table_.edges()[x.edge].from * table_.devices() + device] = x.end_s;
  }
  schedule_.transfers.insert(schedule_.transfers.end(), arriving_.begin(), arriving_.end());
  schedule_.device[op] = device;
  schedule_.start_s[op] = at.start_s;
  end_s_[op] = at.end_s;
  busy_[device].add(at.start_s, at.end_s);
  if (last_[device] == none || end_s_[last_[device]] <= at.end_s) last_[device] = op;
  memory_.add(op, device);
  makespan_s_ = std::max(makespan_s_, at.end_s);
}

HETPLAN_INLINE double partial_schedule::bring_data(std::size_t op, std::size_t device) {
  arriving_.clear();
  held_from_s_.clear();
  double data_s = 0;
  for (const std::uint32_t e : table_.in_edges(op)) {
    const std::size_t producer = table_.edges()[e].from, from = schedule_.device[producer];
    if (from == device) {
      data_s = std::max(data_s, end_s_[producer]);
      continue;
    }
    if (!sent_s_.empty()) {
      if (const double there_s = sent_s_[producer * table_.devices() + device]; there_s >= 0) {
        data_s = std::max(data_s, there_s);
        continue;
      }
    }
    const double takes_s = carried_s(table_, rules_.copies, e, from, device);
    if (!std::isfinite(takes_s)) return takes_s;
    // First what holds no channel, then what does.
    const double holds_s = held_s(table_, rules_, e, from, device), alone_s = takes_s - holds_s;
    const auto held = held_by(from, device, holds_s > 0);
    double from_s = earliest_in_all(held, channel_busy_, end_s_[producer] + alone_s, holds_s);
    // The other transfers of this operator are not in the channels yet.
    for (bool moved = !held.empty(); moved;) {
      moved = false;
      for (std::size_t i = 0; i < arriving_.size(); ++i) {
        const scheduled_transfer& x = arriving_[i];
        const auto theirs = held_by(x.from, x.to, x.end_s > held_from_s_[i]);
        const bool apart =
            x.end_s <= from_s || from_s + holds_s <= held_from_s_[i] ||
            std::none_of(theirs.begin(), theirs.end(), [&](std::size_t c) { return std::binary_search(held.begin(), held.end(), c); });
        if (apart) continue;
        from_s = earliest_in_all(held, channel_busy_, x.end_s, holds_s);
        moved = true;
      }
    }
    arriving_.push_back({e, from, device, std::max(end_s_[producer], from_s - alone_s), from_s + holds_s});
    held_from_s_.push_back(from_s);
    data_s = std::max(data_s, from_s + holds_s);
  }
  return data_s;
}

HETPLAN_INLINE operator_schedule partial_schedule::result() && {
  schedule_.makespan_s = makespan_s_;
  sort_transfers(schedule_.transfers);
  return std::move(schedule_);
}

HETPLAN_INLINE operator_schedule schedule_in_order(const placement_table& t, const placement_rules& r,
                                                   const std::vector<std::size_t>& order, const std::vector<std::size_t>& device) {
  partial_schedule s(t, r);
  for (const std::size_t op : order) {
    if (!std::isfinite(s.try_on(op, device[op]).end_s)) return {};
    s.place(op, device[op]);
  }
  return std::move(s).result();
}

}  // namespace hetplan::place
