// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/planning_graph.hpp>

#include <hetplan/core/error.hpp>

namespace hetplan {

HETPLAN_INLINE std::span<const layer_edge> planning_graph::out_edges(layer_id l) const {
  return std::span(edges_).subspan(first_out_[l.index()], first_out_[l.index() + 1] - first_out_[l.index()]);
}

HETPLAN_INLINE std::span<const std::uint32_t> planning_graph::in_edges(layer_id l) const {
  return std::span(in_).subspan(first_in_[l.index()], first_in_[l.index() + 1] - first_in_[l.index()]);
}

HETPLAN_INLINE layer_id planning_graph::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  if (it == by_name_.end()) throw invalid_input("model \"" + name_ + "\" has no layer \"" + std::string(name) + "\"");
  return it->second;
}

HETPLAN_INLINE double planning_graph::parameters() const {
  std::vector<bool> seen(weight_groups_.size());
  bytes total;
  for (const layer& l : layers_) {
    if (l.weight_group >= 0) {
      if (seen[static_cast<std::size_t>(l.weight_group)]) continue;
      seen[static_cast<std::size_t>(l.weight_group)] = true;
    }
    total += l.weight;
  }
  return total.value() / bytes_per_parameter_;
}

HETPLAN_INLINE flops planning_graph::forward_flops() const {
  flops total;
  for (const layer& l : layers_) total += l.forward_flops;
  return total;
}

}  // namespace hetplan
