// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/graph/layer_sequence.hpp>

#include <algorithm>

namespace hetplan {

HETPLAN_INLINE std::size_t layer_sequence::chain_of(std::size_t block) const {
  return static_cast<std::size_t>(std::upper_bound(chain_first.begin(), chain_first.end(), block) - chain_first.begin()) - 1;
}

HETPLAN_INLINE bool layer_sequence::is_stage(std::size_t first, std::size_t last) const {
  if (first >= last || last > size()) return false;
  const std::size_t head = chain_of(first), tail = chain_of(last - 1);
  return head == tail || (first == chain_first[head] && last == chain_end(tail));
}

HETPLAN_INLINE std::vector<layer_id> layer_sequence::layers_of(std::size_t first, std::size_t last) const {
  std::vector<layer_id> layers;
  for (std::size_t b = first; b < last; ++b) layers.insert(layers.end(), blocks[b].begin(), blocks[b].end());
  return layers;
}

HETPLAN_INLINE layer_sequence sequence_of(const planning_graph& model) {
  layer_sequence all;
  all.blocks.reserve(model.size());
  for (const layer& l : model.layers()) all.blocks.push_back({l.id});
  return all;
}

}  // namespace hetplan
