// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/partial_orders.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::schedule::detail {

HETPLAN_INLINE partial_orders::partial_orders(const tick_table& t)
    : t_(&t), done_(3 * t.stages.size(), 0), free_(t.devices.size(), 0), began_(t.devices.size(), never),
      ends_(2 * t.stages.size() * t.m, 0), left_(t.tasks()) {}

HETPLAN_INLINE double partial_orders::held(std::size_t device) const {
  double sum = 0;
  for (const std::size_t s : t_->devices[device].stages) {
    const std::uint32_t* n = &done_[3 * s];
    sum += (n[0] - n[1]) * t_->stages[s].activation + (n[1] - n[2]) * t_->stages[s].kept;
  }
  return sum;
}

HETPLAN_INLINE ticks partial_orders::arrival(std::size_t stage, std::size_t what) const {
  const tick_table::stage& s = t_->stages[stage];
  const std::uint32_t* n = &done_[3 * stage];
  const std::size_t k = n[what];
  if (k == t_->m) return never;
  if (what > 0 && k == n[what - 1]) return never;  // its own phase before
  if (what == 2) return 0;                         // ran on the same device
  ticks t = 0;
  for (const tick_table::edge& e : what == 0 ? s.ahead : s.behind) {
    if (done_[3 * e.stage + what] <= k) return never;
    t = std::max(t, end_of(e.stage, what, k) + e.delay);
  }
  return t;
}

HETPLAN_INLINE bool partial_orders::has_room(std::size_t stage, room r) const {
  const tick_table::device& d = t_->devices[t_->stages[stage].device];
  double needed = t_->stages[stage].activation;
  for (const std::size_t s : d.stages) {
    const std::uint32_t* n = &done_[3 * s];
    const double full = t_->stages[s].activation;
    const double holds = (n[0] - n[1]) * full + (n[1] - n[2]) * t_->stages[s].kept;
    needed += holds;
    if (s == stage || r == room::for_itself || n[0] > done_[3 * stage]) continue;
    needed += r == room::for_idle_stages && t_->chain ? std::max(0.0, full - holds) : full;
  }
  return needed <= d.memory;
}

HETPLAN_INLINE ticks partial_orders::earliest(task a, room r) const {
  const ticks t = arrival(a.stage, a.what);
  if (t == never || (a.what == 0 && !has_room(a.stage, r))) return never;
  return std::max(t, free_[t_->stages[a.stage].device]);
}

HETPLAN_INLINE partial_orders::undo partial_orders::give(task a, ticks start) {
  const std::size_t d = t_->stages[a.stage].device;
  const undo u{free_[d], began_[d]};
  began_[d] = std::min(began_[d], start);
  free_[d] = start + length(a);
  std::uint32_t& n = done_[3 * a.stage + a.what];
  if (a.what < 2) ends_[(2 * a.stage + a.what) * t_->m + n] = free_[d];
  ++n;
  --left_;
  return u;
}

HETPLAN_INLINE void partial_orders::take_back(task a, const undo& u) {
  const std::size_t d = t_->stages[a.stage].device;
  free_[d] = u.free;
  began_[d] = u.began;
  --done_[3 * a.stage + a.what];
  ++left_;
}

HETPLAN_INLINE std::uint64_t partial_orders::counts_hash() const {
  std::uint64_t h = 0x9e3779b97f4a7c15U;
  for (const std::uint32_t n : done_) {
    h ^= n;
    h *= 0x100000001b3U;
    h ^= h >> 29U;
  }
  return h;
}

HETPLAN_INLINE void partial_orders::reached(std::vector<ticks>& times) const {
  times.assign(free_.begin(), free_.end());
  for (std::size_t i = 0; i < t_->stages.size(); ++i) {
    const tick_table::stage& s = t_->stages[i];
    for (const std::size_t what : {std::size_t{0}, std::size_t{1}}) {
      for (const tick_table::edge& e : what == 0 ? s.ahead : s.behind) {
        ticks not_before = free_[s.device];
        for (std::size_t k = done(i, what); k < done(e.stage, what); ++k, not_before += s.length[what]) {
          times.push_back(std::max(not_before, end_of(e.stage, what, k) + e.delay));
        }
      }
    }
  }
}

HETPLAN_INLINE orders_by_device orders_of(const tick_table& t, const std::vector<partial_orders::task>& sequence) {
  orders_by_device orders(t.devices.size());
  std::vector<int> next(3 * t.stages.size(), 0);
  for (const partial_orders::task& a : sequence) {
    orders[t.stages[a.stage].device].push_back({static_cast<phase>(a.what), stage_id(a.stage), next[3 * a.stage + a.what]++});
  }
  return orders;
}

}  // namespace HETPLAN_NAMESPACE::schedule::detail
