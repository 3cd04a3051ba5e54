// SPDX-License-Identifier: BSL-1.0
#pragma once
/// DeTransformer: one model over the devices of an edge cloud, with little to say to each other.

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/serve_with.hpp>
#include <hetplan/serve/submodular_placement.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Models are cut as widely as they can be, also across servers, and take batches; a GPU has one of them; nothing is passed on.
///
/// Source  DeTransformer (Wei et al., 2024), as EPARA compares itself with it (sections 2.1 and 5.2). Choice: batches, by which it differs
///         from Galaxy here; what its blocks save in communication is a matter of the service times.
[[nodiscard]] inline serve::serving_system detransformer() {
  constexpr serve::parallelism_operators operators{
      .multi_task = false, .cut = serve::model_parallelism::widest, .multi_frame = false, .data_parallel = false};
  return {"detransformer", serve::submodular_placement({.operators = operators, .reach = serve::handling_reach::own_server}),
          serve::serve_locally{}, operators};
}

}  // namespace HETPLAN_NAMESPACE::recipes
