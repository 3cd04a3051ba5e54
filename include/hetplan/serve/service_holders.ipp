// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_holders.hpp>

#include <algorithm>
#include <numeric>

namespace hetplan::serve {

namespace detail {

/// Rows of a table of lists in one array, by counting: first[key] .. first[key + 1].
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
    // By ring, service and position: servers of a ring have consecutive numbers.
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
