// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/ring_knowledge.hpp>

#include <algorithm>
#include <iterator>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE ring_knowledge::ring_knowledge(const edge_cloud& cloud, const std::vector<serving_fault>& faults, double first_s)
    : rings_(cloud), period_s_(cloud.ring.period.value()), first_s_(first_s),
      kept_(faults.empty() ? rings_.history_when_whole() : rings_.history()), failed_from_(cloud.size(), -1), wrong_(cloud.size()) {}

HETPLAN_INLINE void ring_knowledge::begin_deployment(const running_deployment& d) {
  auto capacities = d.capacities();
  capacity_up_to_.resize(capacities.size());
  const auto& all = d.holders();
  double sum = 0;
  for (std::size_t n = 0; n < capacities.size(); ++n) {
    const auto& h = all.holders()[n];
    const bool goes_on =
        n > 0 && h.what == all.holders()[n - 1].what && rings_.ring_of(h.server) == rings_.ring_of(all.holders()[n - 1].server);
    sum = (goes_on ? sum : 0) + capacities[n].per_s;
    capacity_up_to_[n] = sum;
  }
  published_.emplace(std::move(capacities), next_, kept_, period_s_);
}

HETPLAN_INLINE void ring_knowledge::open_period() { published_->open(next_++); }

HETPLAN_INLINE void ring_knowledge::publish(std::size_t holder, server_id server, const holder_state& state) {
  if (wrong_[server.index()] > 0) {
    published_->publish_wrongly(holder, state);
  } else {
    published_->publish(holder, state);
  }
}

HETPLAN_INLINE void ring_knowledge::skip_until(double next_s) {
  const double periods = (next_s - first_s_) / period_s_ - static_cast<double>(rings_.history() + 2);
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
  if (!rings_.is_in(r.here, next_ - 1)) return known_;
  const auto all = holders.holders(rings_.ring_of(r.here), r.what);
  const auto behind = std::ranges::upper_bound(all, r.here, {}, &holder::server);
  // In two rounds: each reads a far place of a large table, which the first round fetches all at a time.
  seen_.clear();
  const auto look_at = [&](std::span<const holder> some) {
    for (const auto& h : some) {
      const auto j = period_heard_of(r, h);
      if (!j) continue;
      const auto number = holders.number(h);
      published_->fetch(number, *j);
      seen_.emplace_back(h.server, number, *j);
    }
  };
  look_at({behind, all.end()});
  look_at({all.begin(), behind});
  for (const auto& h : seen_) known_.push_back(what_is_known(h.server, h.number, h.period));
  return known_;
}

HETPLAN_INLINE std::optional<server_at_share> ring_knowledge::at_share(const pending_request& r, const service_holders& holders,
                                                                       double share) const {
  const auto all = holders.holders(rings_.ring_of(r.here), r.what);
  if (all.empty() || !rings_.is_in(r.here, next_ - 1)) return std::nullopt;
  const auto first = capacity_up_to_.begin() + static_cast<std::ptrdiff_t>(holders.number(all.front()));
  const auto last = first + static_cast<std::ptrdiff_t>(all.size()) - 1;
  const double at = share * *last;
  const auto there = std::upper_bound(first, last, at);
  const auto& h = all[static_cast<std::size_t>(there - first)];
  const auto period = period_heard_of(r, h);
  if (!period) return std::nullopt;
  return server_at_share{what_is_known(h.server, holders.number(h), *period), at - (there == first ? 0 : *std::prev(there))};
}

HETPLAN_INLINE std::optional<std::int64_t> ring_knowledge::period_heard_of(const pending_request& r, const holder& h) const {
  const bool was_there = std::ranges::find(r.path, h.server) != r.path.end();
  if (was_there || knows_that_out(r.here, h.server)) return std::nullopt;
  return rings_.known_period(r.here, h.server, next_ - 1);
}

HETPLAN_INLINE known_server ring_knowledge::what_is_known(server_id s, std::size_t holder, std::int64_t period) const {
  const auto known = published_->known(holder, period, next_ - 1);
  return {s, known.whole, known.capacity, known.idle, seconds(known.wait_s), seconds(known.age_s)};
}

}  // namespace HETPLAN_NAMESPACE::serve
