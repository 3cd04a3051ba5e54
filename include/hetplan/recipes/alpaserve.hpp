// SPDX-License-Identifier: BSL-1.0
#pragma once
/// AlpaServe: every site for itself, with model parallelism.

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/serve_with.hpp>
#include <hetplan/serve/submodular_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Batches, slices and model parallelism within a server, placed greedily by what each server serves itself; nothing is passed on.
///
/// Source  AlpaServe (Li et al., 2023), its greedy placement by attainment, as EPARA compares itself with it (section 5.1: refuses what
///         needs offloading or several servers).
[[nodiscard]] inline serve::serving_system alpaserve() {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"alpaserve",
          serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server, .across_servers = false}),
          serve::serve_locally{}, operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
