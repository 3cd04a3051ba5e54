// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/placement_candidates.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace hetplan::serve {

HETPLAN_INLINE placement_candidates::placement_candidates(const edge_cloud& cloud, const std::vector<service>& services,
                                                          const any_service_time& times, const parallelism_operators& operators)
    : of_(&services), services_(services.size()), rings_(cloud), on_server_(cloud.size()), in_ring_(rings_.rings()) {
  const auto count = [](std::vector<gpu_pool>& pools, const gpu& unit, bool across) {
    const auto same = std::ranges::find(pools, unit, &gpu_pool::unit);
    if (same == pools.end()) {
      pools.push_back({unit, 1, across});
    } else {
      ++same->count;
    }
  };
  std::vector<std::vector<gpu_pool>> together(rings_.rings());
  for (std::size_t n = 0; n < cloud.size(); ++n) {
    const server_id s(n);
    std::vector<gpu_pool> own;
    std::vector<gpu_pool> lent;
    for (const auto& g : cloud[s].gpus) {
      count(own, g, false);
      count(together[rings_.ring_of(s)], g, true);
    }
    for (const auto& d : cloud[s].devices) count(lent, d.unit, false);
    for (const auto& p : own) on_server_[n].push_back({pool_of(p), placement_site::gpus});
    // One device alone, however many there are of its kind.
    for (const auto& p : lent) on_server_[n].push_back({pool_of({p.unit, 1}), placement_site::device});
  }
  for (std::size_t r = 0; r < rings_.rings(); ++r) {
    for (const auto& p : together[r]) in_ring_[r].push_back({pool_of(p), placement_site::across});
  }
  for (auto& p : pools_) {
    for (std::size_t l = 0; l < services_; ++l) p.allocations.push_back(allocate(service_id(l), services[l], p.what, times, operators));
  }
}

HETPLAN_INLINE std::size_t placement_candidates::pool_of(const gpu_pool& p) {
  const auto same = std::ranges::find(pools_, p, &pool_entry::what);
  if (same != pools_.end()) return static_cast<std::size_t>(same - pools_.begin());
  pools_.push_back({p, {}});
  return pools_.size() - 1;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::at(server_id s, service_id l) const {
  std::vector<placement_candidate> all;
  for (const auto& at : on_server_[s.index()]) {
    const auto* a = allocated(at.pool, l);
    if (a && a->serves((*of_)[l.index()])) all.push_back({rings_.ring_of(s), l, s, at.site, at.pool});
  }
  return all;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::within(std::size_t ring, service_id l) const {
  std::vector<placement_candidate> all;
  for (std::int32_t p = 0; p < rings_[ring].count; ++p)
    std::ranges::copy(at(server_id(rings_[ring].first + p), l), std::back_inserter(all));
  return all;
}

HETPLAN_INLINE std::vector<placement_candidate> placement_candidates::across(std::size_t ring, service_id l) const {
  std::vector<placement_candidate> all;
  for (const auto& at : in_ring_[ring]) {
    const auto* a = allocated(at.pool, l);
    if (a && a->serves((*of_)[l.index()]) && a->gpu_count((*of_)[l.index()]) > 1) all.push_back({ring, l, {}, at.site, at.pool});
  }
  return all;
}

HETPLAN_INLINE std::vector<const allocation*> placement_candidates::all() const {
  std::vector<const allocation*> every;
  for (const auto& p : pools_) {
    for (const auto& a : p.allocations) {
      if (a) every.push_back(&*a);
    }
  }
  return every;
}

}  // namespace hetplan::serve
