// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/ring_knowledge.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE ring_knowledge::ring_knowledge(const edge_cloud& cloud, const std::vector<serving_fault>& faults)
    : rings_(cloud), period_s_(cloud.ring.period.value()), kept_(faults.empty() ? rings_.history_when_whole() : rings_.history()),
      failed_from_(cloud.size(), -1), wrong_(cloud.size()) {}

HETPLAN_INLINE void ring_knowledge::begin_deployment(const running_deployment& d) {
  published_.emplace(d.capacities(), next_, kept_, period_s_);
}

HETPLAN_INLINE void ring_knowledge::open_period() { published_->open(next_++); }

HETPLAN_INLINE void ring_knowledge::publish(std::size_t holder, server_id server, const publication& state) {
  if (wrong_[server.index()] > 0) {
    published_->publish_wrongly(next_ - 1, holder, state);
  } else {
    published_->publish(next_ - 1, holder, state);
  }
}

HETPLAN_INLINE void ring_knowledge::skip_until(double next_s) {
  const double periods = next_s / period_s_ - static_cast<double>(rings_.history() + 2);
  if (periods > static_cast<double>(next_) && periods < 0x1p60) next_ = static_cast<std::int64_t>(periods);
}

HETPLAN_INLINE void ring_knowledge::fail(server_id s) {
  failed_from_[s.index()] = next_;
  any_failed_ = true;
  rings_.set_out(s, true, next_);
}

HETPLAN_INLINE bool ring_knowledge::knows_that_out(server_id observer, server_id other) const {
  if (!has_failed(other)) return false;
  const auto from = failed_from_[other.index()];
  const auto d = rings_.distance(observer, other, std::max<std::int64_t>(0, from - 1));
  return d && next_ - 1 >= from + *d;
}

HETPLAN_INLINE std::span<const known_server> ring_knowledge::known(const pending_request& r, const service_holders& holders) {
  known_.clear();
  const auto k = next_ - 1;
  if (!rings_.is_in(r.here, k)) return known_;
  const auto all = holders.holders(rings_.ring_of(r.here), r.what);
  const auto behind = std::ranges::upper_bound(all, r.here, {}, &holder::server);
  // In two rounds: each reads two far places of a large table, which the first round fetches all at a time.
  seen_.clear();
  const auto look_at = [&](std::span<const holder> some) {
    for (const auto& h : some) {
      const bool was_there = std::ranges::find(r.path, h.server) != r.path.end();
      if (was_there || knows_that_out(r.here, h.server)) continue;
      const auto j = rings_.known_period(r.here, h.server, k);
      if (!j) continue;
      const auto number = holders.number(h);
      published_->fetch(number, *j, k);
      seen_.emplace_back(h.server, number, *j);
    }
  };
  look_at({behind, all.end()});
  look_at({all.begin(), behind});
  for (const auto& h : seen_) {
    const auto s = published_->known(h.number, h.period, k);
    known_.emplace_back(h.server, s.capacity, s.idle, seconds(s.wait_s), seconds(s.age_s));
  }
  return known_;
}

}  // namespace HETPLAN_NAMESPACE::serve
