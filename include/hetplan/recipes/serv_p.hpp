// SPDX-License-Identifier: BSL-1.0
#pragma once
/// SERV-P: one scheduler that knows everything, and takes its time.

#include <hetplan/serve/central_handler.hpp>
#include <hetplan/serve/serve_with.hpp>
#include <hetplan/serve/submodular_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Batches, slices and model parallelism as EPARA's, placed by the same policy; every request waits for the decision of one process.
///
/// Source  SERV-P (Farhadi et al., 2021), as EPARA compares itself with it (sections 5.1 and 5.2, figure 3e; groups of 10 servers). Choice:
///         operators and placement, of which nothing is said, as InterEdge's, so that only the handling differs.
[[nodiscard]] inline serve::serving_system serv_p() {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"serv-p", serve::submodular_placement({.operators = operators}), serve::central_handler(), operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
