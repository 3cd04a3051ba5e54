// SPDX-License-Identifier: BSL-1.0
#pragma once
/// SERV-P: one scheduler that knows everything, and takes its time.

#include <hetplan/recipes/interedge.hpp>
#include <hetplan/serve/central_handler.hpp>
#include <hetplan/serve/serve_with.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Batches, slices and model parallelism as EPARA's, placed by the same policy; every request waits for the decision of one process.
///
/// Source  SERV-P (Farhadi et al., 2021), as EPARA compares itself with it (sections 5.1 and 5.2, figure 3e; groups of 10 servers). Choice:
///         operators and placement, of which nothing is said, as InterEdge's, so that only the handling differs.
[[nodiscard]] inline serve::serving_system serv_p() {
  auto system = interedge();
  system.name = "serv-p";
  system.handler = serve::central_handler();
  return system;
}

}  // namespace HETPLAN_NAMESPACE::recipes
