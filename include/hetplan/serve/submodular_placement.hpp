// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's placement of services, by what was asked in the time before.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/placement_policy.hpp>
#include <hetplan/serve/service_demand.hpp>

namespace hetplan::serve {

struct submodular_options {
  parallelism_operators operators = {};
  handling_reach reach = handling_reach::ring;
  arrival_model arrivals = arrival_model::by_chance;
  std::vector<prioritised_service> first = {};  ///< S1
  bool across_servers = true;                   ///< S3
  greedy_search search = greedy_search::lazy;
  std::optional<greedy_order> order = {};  ///< none: both, and S3 before S2 as well; what serves most is taken
};

/// A placement, and how good it can be said to be.
struct submodular_report {
  deployment placed = {};
  double value = 0;                        ///< phi: requests (frames) a second by the fluid estimate
  double bound = 0;                        ///< no placement with these allocations has more
  double guarantee = 0;                    ///< 1 / (1 + P), of the optimum (eq. 3), if what the paper takes for granted holds
  std::array<std::size_t, 4> stages = {};  ///< instances placed by S1, S2, S3, and then for arrivals by chance
  std::uint64_t evaluated = 0;             ///< gains that were worked out
};

/// Places what serves most of a demand: S1 the list, S2 within servers, S3 across servers. Where arrivals are not even, both by them and as
/// if they were, going on after that with what GPUs are left; what serves more is taken.
///
/// The bound is that of a knapsack: as if GPUs were one and instances could be split, each service by its best allocation. The guarantee
/// takes for granted that phi is submodular (not proven for the fluid estimate), that no service spans servers, and that each server has at
/// most one GPU that cannot be filled.
/// Complexity   see greedy_placement. Throws  invalid_model where a service time is not finite and above 0; invalid_input where the list
///              names what is not there.
/// Determinism  see greedy_placement.
/// Source       EPARA, section 3.3, algorithms 1 and 2, eq. 3. Deviations: phi is the fluid estimate; beside gain, even arrivals
///              and S2 before S3 it tries gain per GPU, arrivals by chance and S3 before S2.
[[nodiscard]] submodular_report place_submodular(const placement_question& q, const service_demand& demand,
                                                 const submodular_options& options = {});

/// A placement_policy: places anew for what was asked in the window, and leaves what fits where it stands.
///
/// Nobody has asked anything: everything stays as it is; at the beginning, what is listed is placed.
/// Source  EPARA, sections 3.3 and 3.4 (coarse granularity).
class submodular_placement {
 public:
  explicit submodular_placement(submodular_options options = {}) : options_(std::move(options)) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  submodular_options options_;
};
static_assert(check_placement_policy<submodular_placement>());

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/submodular_placement.ipp>
#endif
