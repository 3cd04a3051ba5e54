// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/light_boundaries.hpp>

#include <algorithm>

#include <hetplan/graph/sequence_cuts.hpp>

namespace hetplan {

HETPLAN_INLINE layer_sequence each_layer_of(const layer_sequence& s) {
  layer_sequence fine;
  for (const auto& block : s.blocks) {
    for (const layer_id l : block) fine.blocks.push_back({l});
  }
  return fine;
}

HETPLAN_INLINE std::vector<std::size_t> light_boundaries(const std::vector<double>& carried) {
  std::vector<std::size_t> light;
  for (std::size_t b = 1; b < carried.size(); ++b) {
    const bool least = (b == 1 || carried[b] <= carried[b - 1]) && (b + 1 == carried.size() || carried[b] <= carried[b + 1]);
    if (least) light.push_back(b);
  }
  return light;
}

HETPLAN_INLINE std::vector<std::size_t> light_boundaries(const planning_graph& model, const layer_sequence& s) {
  const sequence_cuts cuts(model, s);
  std::vector<double> carried;
  for (std::size_t b = 0; b < s.size(); ++b) {
    const auto [forward_bytes, gradient_bytes] = cuts.bytes_in(b, s.size());
    carried.push_back(forward_bytes + gradient_bytes);
  }
  return light_boundaries(carried);
}

HETPLAN_INLINE layer_sequence light_blocks(const planning_graph& model, std::size_t most) {
  const layer_sequence all = sequence_of(model);
  std::vector<double> before{0};
  const bool counted =
      std::any_of(model.layers().begin(), model.layers().end(), [](const layer& l) { return l.forward_flops.value() > 0; });
  for (const layer& l : model.layers()) before.push_back(before.back() + (counted ? l.forward_flops.value() : 1));
  layer_sequence row;
  std::size_t begun = 0;
  double next = before.back() / static_cast<double>(most);
  std::vector<std::size_t> ends = light_boundaries(model, all);
  const bool few = ends.size() < most;
  ends.push_back(all.size());
  for (const std::size_t end : ends) {
    // Rounding, and layers without FLOP behind all others, must not make one block more.
    if (!few && end != all.size() && (before[end] < next || row.size() + 1 == most)) continue;
    row.blocks.push_back(all.layers_of(begun, end));
    begun = end;
    next = before[end] + before.back() / static_cast<double>(most);
  }
  return row;
}

}  // namespace hetplan
