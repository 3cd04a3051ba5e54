// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/greedy_placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/serve/placement_candidates.hpp>
#include <hetplan/serve/service_demand.hpp>

namespace hetplan::serve {

HETPLAN_INLINE deployment cache_placement::place(const placement_question& q) const {
  if (q.requests.empty()) return q.present;
  struct use {
    std::uint64_t count = 0;
    double last_s = 0;
    service_id what;
  };
  const std::size_t services = q.services.size();
  std::vector<use> uses(q.cloud.size() * services);
  for (std::size_t n = 0; n < uses.size(); ++n) uses[n].what = service_id(n % services);
  for (const auto& r : q.requests) {
    auto& u = uses[r.server.index() * services + r.service.index()];
    ++u.count;
    u.last_s = r.arrival_s;
  }
  const placement_candidates candidates(q.cloud, q.services, q.times, operators_);
  gpu_choice gpus(q.cloud, q.services, q.damage, q.present);
  deployment placed;
  const auto put = [&](const placement_candidate& c) {
    const auto* a = candidates.allocated(c.pool, c.what);
    const auto i = gpus.on_server(c, *a, candidates.pool(c.pool).unit);
    if (!i) return false;
    gpus.take(*i, *a);
    placed.instances.push_back(*i);
    return true;
  };
  for (std::size_t n = 0; n < q.cloud.size(); ++n) {
    std::vector<use> here(uses.begin() + static_cast<std::ptrdiff_t>(n * services),
                          uses.begin() + static_cast<std::ptrdiff_t>((n + 1) * services));
    std::erase_if(here, [](const use& u) { return u.count == 0; });
    std::ranges::stable_sort(here, [this](const use& a, const use& b) {
      if (rule_ == cache_eviction::least_recently_used) return a.last_s > b.last_s;
      return rule_ == cache_eviction::least_frequently_used ? a.count > b.count : a.count < b.count;
    });
    for (bool fits = true; fits;) {
      fits = false;
      for (const auto& u : here) {
        const auto all = candidates.at(server_id(n), u.what);
        if (std::ranges::any_of(all, put)) fits = true;
      }
    }
  }
  return placed;
}

HETPLAN_INLINE deployment complementary_placement::place(const placement_question& q) const {
  if (q.requests.empty()) return q.present;
  const service_demand demand(q.cloud, q.services, q.requests, q.window);
  const placement_candidates candidates(q.cloud, q.services, q.times, operators_);
  gpu_choice gpus(q.cloud, q.services, q.damage, q.present, gpu_fit::most_even);
  deployment placed;
  /// The capacity of an instance that was placed; 0 where none fits.
  const auto put = [&](server_id s, service_id l) {
    for (const auto& c : candidates.at(s, l)) {
      if (c.site != placement_site::gpus) continue;
      const auto* a = candidates.allocated(c.pool, l);
      const auto i = gpus.on_server(c, *a, candidates.pool(c.pool).unit);
      if (!i) continue;
      gpus.take(*i, *a);
      placed.instances.push_back(*i);
      return a->capacity;
    }
    return 0.0;
  };
  for (std::size_t n = 0; n < q.cloud.size(); ++n) {
    const server_id s(n);
    std::vector<double> capacity(q.services.size());
    std::vector<char> full(q.services.size());
    for (;;) {
      std::size_t next = capacity.size();
      double least = 1;
      for (std::size_t l = 0; l < capacity.size(); ++l) {
        const double asked = demand.at(s, service_id(l));
        if (full[l] != 0 || !(asked > 0) || capacity[l] / asked >= least) continue;
        least = capacity[l] / asked;
        next = l;
      }
      if (next == capacity.size()) break;
      const double more = put(s, service_id(next));
      capacity[next] += more;
      full[next] = more > 0 ? 0 : 1;
    }
  }
  return placed;
}

}  // namespace hetplan::serve
