// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA: parallelism by task category, placement by served requests, distributed request handling.

#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/serve/greedy_placement.hpp>
#include <hetplan/serve/request_handlers.hpp>
#include <hetplan/serve/serve_requests.hpp>

namespace hetplan::recipes {

struct epara_options {
  int most_offloads = 5;
  std::uint64_t seed = 1;
  serve::submodular_options placement = {};
};

/// EPARA: allocates BS, MT, MP, MF and DP by category, places in the stages S1 to S3, and offloads requests by idle goodput.
///
/// The services must outlive the system.
/// Source  EPARA (Wang et al.), sections 3.1 to 3.4. Deviations: see serve/parallelism_allocator.hpp, serve/greedy_placement.hpp,
///         serve/request_handlers.hpp.
[[nodiscard]] inline serve::serving_system epara(const std::vector<serve::service>& services, epara_options o = {}) {
  const auto operators = o.placement.operators;
  return {"epara", serve::submodular_placement(std::move(o.placement)), serve::offload_by_idle_goodput{&services, o.seed, o.most_offloads},
          operators};
}
serve::serving_system epara(const std::vector<serve::service>&& the_services_must_outlive_the_system, epara_options = {}) = delete;

}  // namespace hetplan::recipes
