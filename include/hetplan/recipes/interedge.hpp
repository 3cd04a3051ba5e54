// SPDX-License-Identifier: BSL-1.0
#pragma once
/// InterEdge: edge servers that pass requests on in turn.

#include <hetplan/serve/pass_on_in_turn.hpp>
#include <hetplan/serve/serve_with.hpp>
#include <hetplan/serve/submodular_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Nothing at the level of requests (no MF, no DP); batches, slices and model parallelism as EPARA's, placed by the same policy; what a
/// server cannot serve goes to the others round robin.
///
/// Source  InterEdge (Brown et al., 2024), as EPARA compares itself with it (section 5.1). Choice: its placement, of which nothing is said,
///         is EPARA's.
[[nodiscard]] inline serve::serving_system interedge(int most_offloads = 5) {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"interedge", serve::submodular_placement({.operators = operators}), serve::pass_on_in_turn(most_offloads), operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
