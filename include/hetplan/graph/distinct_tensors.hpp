// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The tensors of some layers: those of one weight group are one.

#include <set>
#include <span>

#include <hetplan/graph/planning_graph.hpp>

namespace hetplan {

/// Calls f(layer) for the first layer of each distinct tensor, in the order given.
template <class F>
void for_each_tensor(const planning_graph& model, std::span<const layer_id> layers, F&& f) {
  std::set<std::int32_t> seen;
  for (const layer_id l : layers) {
    if (model[l].weight_group >= 0 && !seen.insert(model[l].weight_group).second) continue;
    f(model[l]);
  }
}

}  // namespace hetplan
