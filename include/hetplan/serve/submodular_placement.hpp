// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's placement of services by the requests of the last window.

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
  std::optional<greedy_order> order = {};  ///< empty: both, also S3 before S2; the best is taken
};

/// A placement and what is known of its quality.
struct submodular_report {
  deployment placed = {};
  double value = 0;                        ///< phi by the fluid estimate: requests (frames) per second
  double bound = 0;                        ///< upper bound over all placements with these allocations
  double guarantee = 0;                    ///< 1 / (1 + P) of the optimum (eq. 3), under the paper's assumptions
  std::array<std::size_t, 4> stages = {};  ///< instances placed by S1, S2, S3, and then for bursty arrivals
  std::uint64_t evaluated = 0;             ///< evaluated gains
};

/// Places what serves most of a demand: S1 the list, S2 within servers, S3 across servers. For uneven arrivals it tries that model alone,
/// and even arrivals followed by that model on the remaining GPUs; the better result is taken.
///
/// The bound is that of a knapsack with all GPUs as one and divisible instances, each service by its best allocation. The guarantee assumes
/// that phi is submodular (not proven for the fluid estimate), that no service spans servers, and at most one unfilled GPU per server.
/// Complexity   see greedy_placement. Throws  invalid_model for a service time not finite and above 0; invalid_input for unknown names in
///              the list.
/// Determinism  see greedy_placement.
/// Source       EPARA, section 3.3, algorithms 1 and 2, eq. 3. Deviations: phi is the fluid estimate; gain per GPU, bursty arrivals
///              and S3 before S2 are tried beside gain, even arrivals and S2 before S3.
[[nodiscard]] submodular_report place_submodular(const placement_question& q, const service_demand& demand,
                                                 const submodular_options& options = {});

/// A placement_policy that places services anew for the requests of the window; what still fits stays in place. Without requests
/// the deployment stays, or at the beginning the list is placed.
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
