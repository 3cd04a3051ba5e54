// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/cache_placement.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/serve/gpu_choice.hpp>
#include <hetplan/serve/placement_candidates.hpp>

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

}  // namespace hetplan::serve
