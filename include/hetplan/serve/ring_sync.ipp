// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/ring_sync.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace hetplan::serve {

HETPLAN_INLINE ring_sync::ring_sync(const edge_cloud& cloud)
    : group_(static_cast<std::size_t>(cloud.ring.group)), max_age_(cloud.ring.max_age) {
  for (std::size_t first = 0; first < cloud.size(); first += group_) {
    const auto count = std::min(group_, cloud.size() - first);
    rings_.push_back({{static_cast<std::int32_t>(first), static_cast<std::int32_t>(count)}, {}});
    const auto oldest = max_age(rings_.back());
    history_ = std::max(history_, oldest + 1);
    history_when_whole_ = std::max(history_when_whole_, std::min<std::int64_t>(oldest, rings_.back().where.count / 2) + 1);
  }
}

HETPLAN_INLINE void ring_sync::count(topology& t) {
  const auto n = t.out.size();
  t.rank.assign(n + 1, 0);
  t.cuts.assign(n + 1, 0);
  for (std::size_t p = 0; p < n; ++p) {
    t.rank[p + 1] = t.rank[p] + (t.out[p] != 0 ? 0 : 1);
    t.cuts[p + 1] = t.cuts[p] + (t.cut[p] != 0 ? 1 : 0);
  }
}

HETPLAN_INLINE ring_sync::topology& ring_sync::at(ring_state& r, std::int64_t period) {
  const auto n = static_cast<std::size_t>(r.where.count);
  if (r.then.empty()) {
    r.then.push_back({0, std::vector<int>(n), std::vector<int>(n), {}, {}});
    count(r.then.back());
  }
  if (r.then.back().from < period) {
    auto next = r.then.back();
    next.from = period;
    r.then.push_back(std::move(next));
  }
  return r.then.back();
}

HETPLAN_INLINE void ring_sync::set_out(server_id s, bool out, std::int64_t period) {
  auto& r = rings_[ring_of(s)];
  auto& t = at(r, period);
  t.out[static_cast<std::size_t>(s.value - r.where.first)] = out ? 1 : 0;
  count(t);
}

HETPLAN_INLINE void ring_sync::set_cut(server_id s, bool cut, std::int64_t period) {
  auto& r = rings_[ring_of(s)];
  auto& t = at(r, period);
  t.cut[static_cast<std::size_t>(s.value - r.where.first)] += cut ? 1 : -1;
  count(t);
}

HETPLAN_INLINE std::optional<std::int64_t> ring_sync::distance(const topology& t, std::int32_t a, std::int32_t b) {
  const auto low = static_cast<std::size_t>(std::min(a, b));
  const auto high = static_cast<std::size_t>(std::max(a, b));
  if (t.out[low] != 0 || t.out[high] != 0) return std::nullopt;
  if (low == high) return 0;
  // Over the gaps low .. high - 1, or over all other gaps.
  const auto inner = t.rank[high] - t.rank[low];
  const auto outer = t.rank.back() - inner;
  const bool inner_cut = t.cuts[high] > t.cuts[low];
  const bool outer_cut = t.cuts.back() - (t.cuts[high] - t.cuts[low]) > 0;
  if (inner_cut && outer_cut) return std::nullopt;
  if (inner_cut) return outer;
  return outer_cut ? inner : std::min(inner, outer);
}

HETPLAN_INLINE std::optional<std::int64_t> ring_sync::distance(server_id a, server_id b, std::int64_t k) const {
  const auto& r = rings_[ring_of(a)];
  if (ring_of(b) != ring_of(a)) return std::nullopt;
  if (r.then.empty()) {
    const auto apart = a.value < b.value ? b.value - a.value : a.value - b.value;
    return std::min(apart, r.where.count - apart);
  }
  const auto after = std::ranges::upper_bound(r.then, k, {}, &topology::from);
  return distance(*std::prev(after), a.value - r.where.first, b.value - r.where.first);
}

HETPLAN_INLINE std::int64_t ring_sync::known_with_faults(const ring_state& r, server_id observer, server_id other, std::int64_t k) const {
  std::int64_t known = never_heard;
  for (std::size_t i = 0; i < r.then.size() && r.then[i].from <= k; ++i) {
    const auto last = i + 1 < r.then.size() ? std::min(k, r.then[i + 1].from - 1) : k;
    const auto d = distance(r.then[i], observer.value - r.where.first, other.value - r.where.first);
    if (d) known = std::max(known, last - *d);
  }
  return known != never_heard && k - known <= max_age(r) ? known : never_heard;
}

namespace detail {

/// An entry of a table of lists in one array: row `key` is first[key] .. first[key + 1].
struct keyed_instance {
  std::size_t key;
  instance_id id;
};

HETPLAN_INLINE void gather(const std::vector<keyed_instance>& entries, std::size_t keys, std::vector<std::uint32_t>& first,
                           std::vector<instance_id>& rows) {
  first.assign(keys + 1, 0);
  for (const auto& e : entries) ++first[e.key + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  rows.resize(entries.size());
  auto next = first;
  for (const auto& e : entries) rows[next[e.key]++] = e.id;
}

}  // namespace detail

HETPLAN_INLINE service_holders::service_holders(const deployment& d, std::span<const instance_id> ids, std::size_t servers,
                                                std::size_t services, const ring_sync& rings)
    : services_(services) {
  std::vector<detail::keyed_instance> own;
  std::vector<detail::keyed_instance> led;
  for (std::size_t i = 0; i < d.instances.size(); ++i) {
    const auto& x = d.instances[i];
    const auto add = [&](server_id s, standing where) {
      own.push_back({(s.index() * services + x.what.index()) * 3 + static_cast<std::size_t>(where), ids[i]});
    };
    if (x.device) {
      add(x.device->server, standing::device);
    } else if (x.spans_servers()) {
      std::vector<server_id> members;
      for (const auto& g : x.gpus) members.push_back(g.server);
      std::ranges::sort(members);
      members.erase(std::unique(members.begin(), members.end()), members.end());
      for (const auto m : members) add(m, standing::spanning);
    } else {
      add(x.leader(), standing::local);
    }
    // Keys by ring, service and position: servers of a ring have consecutive numbers.
    const auto ring = rings.ring_of(x.leader());
    const auto& where = rings[ring];
    const auto key = static_cast<std::size_t>(where.first) * services + x.what.index() * static_cast<std::size_t>(where.count) +
                     static_cast<std::size_t>(x.leader().value - where.first);
    led.push_back({key, ids[i]});
  }
  detail::gather(own, servers * services * 3, own_first_, own_);

  std::vector<std::uint32_t> led_first;
  detail::gather(led, servers * services, led_first, led_);
  holders_first_.assign(rings.rings() * services + 1, 0);
  std::size_t key = 0;
  for (std::size_t ring = 0; ring < rings.rings(); ++ring) {
    for (std::size_t l = 0; l < services; ++l) {
      for (std::int32_t p = 0; p < rings[ring].count; ++p, ++key) {
        if (led_first[key] == led_first[key + 1]) continue;
        holders_.push_back({server_id(rings[ring].first + p), service_id(l), led_first[key], led_first[key + 1]});
      }
      holders_first_[ring * services + l + 1] = static_cast<std::uint32_t>(holders_.size());
    }
  }
  order_.resize(holders_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::ranges::sort(order_, {}, [this](std::uint32_t n) { return led_[holders_[n].first]; });
}

}  // namespace hetplan::serve
