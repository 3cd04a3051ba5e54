// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placing services as if servers were caches.

#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_policy.hpp>

namespace hetplan::serve {

/// Which services a full server lets go: the one asked for longest ago, least often, or most often.
enum class cache_eviction { least_recently_used, least_frequently_used, most_frequently_used };

/// A placement_policy: every server holds the services that were asked there and that an eviction rule would leave; one instance of each in
/// that order, and again from the beginning as long as one fits.
///
/// Nobody has asked anything: everything stays as it is. Spanning servers is nothing that caches know.
/// Complexity   O(requests + instances). Determinism  ties: the smaller service.
/// Source       EPARA, section 5.3.1 and figure 17b (LRU, LFU, MFU). Deviation: the paper does not say how caches are filled; so here.
class cache_placement {
 public:
  explicit cache_placement(cache_eviction rule, parallelism_operators operators = {}) : rule_(rule), operators_(operators) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  cache_eviction rule_;
  parallelism_operators operators_;
};
static_assert(check_placement_policy<cache_placement>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/cache_placement.ipp>
#endif
