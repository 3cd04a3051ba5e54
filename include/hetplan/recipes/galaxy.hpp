// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Galaxy: every GPU a device, one model over as many as there are.

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/serve_with.hpp>
#include <hetplan/serve/submodular_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Models are cut as widely as they can be, also across servers; a GPU has one of them; one request at a time; nothing is passed on.
///
/// Source  Galaxy (Ye et al., 2024), as EPARA compares itself with it (section 5.1: each GPU a device, across servers; section 2.1: no
///         multi-task). Choice: no batches, as Galaxy itself serves single requests.
[[nodiscard]] inline serve::serving_system galaxy() {
  constexpr serve::parallelism_operators operators{
      .batching = false, .multi_task = false, .cut = serve::model_parallelism::widest, .multi_frame = false, .data_parallel = false};
  return {"galaxy", serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server}),
          serve::serve_locally{}, operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
