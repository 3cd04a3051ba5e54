// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/move_boundaries.hpp>

namespace hetplan::partition::detail {

HETPLAN_INLINE std::optional<movable_plan> movable_plan::of(plan p, const layer_sequence& s) {
  movable_plan m(std::move(p), s);
  std::size_t at = 0;
  for (const stage& st : m.plan_.stages) {
    std::size_t end = at, reached = 0;
    while (end < s.size() && reached < st.layers.size()) reached += s.blocks[end++].size();
    if (!s.is_stage(at, end)) return std::nullopt;
    std::vector<layer_id> run = s.layers_of(at, end), layers = st.layers;
    m.by_id_ = m.by_id_ && std::is_sorted(layers.begin(), layers.end());
    std::sort(run.begin(), run.end());
    std::sort(layers.begin(), layers.end());
    if (run != layers) return std::nullopt;
    m.first_.push_back(at);
    at = end;
  }
  m.first_.push_back(at);
  if (at != s.size()) return std::nullopt;
  return m;
}

HETPLAN_INLINE std::optional<movable_plan> movable_plan::moved(std::size_t i, std::size_t to) const {
  if (!sequence_->is_stage(first_[i - 1], to) || !sequence_->is_stage(to, first_[i + 1])) return std::nullopt;
  movable_plan other = *this;
  other.first_[i] = to;
  for (const std::size_t s : {i - 1, i}) {
    auto& layers = other.plan_.stages[s].layers;
    layers = sequence_->layers_of(other.first_[s], other.first_[s + 1]);
    if (by_id_) std::sort(layers.begin(), layers.end());
  }
  return other;
}

HETPLAN_INLINE movable_plan movable_plan::swapped(std::size_t i, std::size_t j) const {
  movable_plan other = *this;
  std::swap(other.plan_.stages[i].devices, other.plan_.stages[j].devices);
  return other;
}

}  // namespace hetplan::partition::detail
