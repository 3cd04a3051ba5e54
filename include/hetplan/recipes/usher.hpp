// SPDX-License-Identifier: BSL-1.0
#pragma once
/// USHER: models that need much compute beside models that need much memory.

#include <hetplan/serve/complementary_placement.hpp>
#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/serve_with.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Batches, slices and model parallelism within a server, as many replicas as are asked for, packed by what they need; nothing is passed
/// on.
///
/// Source  USHER (Shubha et al., 2024), as EPARA compares itself with it (section 5.2). Deviations: see serve/complementary_placement.hpp.
[[nodiscard]] inline serve::serving_system usher() {
  constexpr serve::parallelism_operators operators{.multi_frame = false, .data_parallel = false};
  return {"usher", serve::complementary_placement(operators), serve::serve_locally{}, operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
