// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/service_demand.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/ring_sync.hpp>

namespace hetplan::serve {

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

namespace detail {

/// Counts arrivals in equal, consecutive intervals.
class counts_within {
 public:
  /// Adds an arrival at this many intervals from the beginning, in order of time.
  void add(double at) {
    const double time = std::floor(at);
    if (time > time_) close(time);
    ++count_;
  }
  /// Returns variance over mean of the completed intervals.
  [[nodiscard]] double dispersion() const {
    if (time_ < 20 || !(sum_ > 0)) return 1;
    const double mean = sum_ / time_;
    return std::max(1.0, (squares_ / time_ - mean * mean) / mean);
  }

 private:
  void close(double time) {
    sum_ += count_;
    squares_ += count_ * count_;
    count_ = 0;
    time_ = time;
  }
  double time_ = 0;  ///< the current interval, and the number of completed ones
  double count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

}  // namespace detail

HETPLAN_INLINE service_demand::service_demand(const edge_cloud& cloud, const std::vector<service>& services,
                                              std::span<const request> requests, seconds window)
    : service_demand(cloud.size(), services.size()) {
  if (!std::isfinite(window.value()) || !(window.value() > 0))
    throw invalid_input("service_demand: window = " + to_text(window.value()) + " s; expected a finite time > 0");
  const ring_sync rings(cloud);
  std::vector<detail::counts_within> counts(rings.rings() * services_);
  const double begin_s = requests.empty() ? 0 : requests.front().arrival_s;
  for (const auto& r : requests) {
    const auto l = r.service.index();
    const auto& s = services[l];
    per_s_[r.server.index() * services_ + l] += s.credit(r.length);
    const double time_s = s.is_stream() ? s.typical_length() / s.rate : s.latency.value();
    counts[rings.ring_of(r.server) * services_ + l].add((r.arrival_s - begin_s) / time_s);
  }
  for (auto& d : per_s_) d /= window.value();
  dispersion_.reserve(counts.size());
  for (auto& c : counts) dispersion_.push_back(c.dispersion());
}

}  // namespace hetplan::serve
