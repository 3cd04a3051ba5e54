// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Packing services that need much compute beside those that need much memory.

#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_policy.hpp>

namespace hetplan::serve {

/// A placement_policy for servers that pass nothing on: every server has as many instances of each service as it is asked for, the service
/// of which the smallest share is covered next, each on the GPUs that it leaves the most even: compute and memory.
///
/// Nobody has asked anything: everything stays as it is.
/// Complexity   O(requests + instances x (services + GPUs of a server)). Determinism  ties: the smaller service, the smaller GPU.
/// Source       USHER (Shubha et al., 2024), as EPARA compares itself with it: replicas by demand, models that are heavy in compute beside
///              those heavy in memory. Deviations: interference is a matter of the service times; graphs are not merged.
class complementary_placement {
 public:
  explicit complementary_placement(parallelism_operators operators = {}) : operators_(operators) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  parallelism_operators operators_;
};
static_assert(check_placement_policy<complementary_placement>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/complementary_placement.ipp>
#endif
