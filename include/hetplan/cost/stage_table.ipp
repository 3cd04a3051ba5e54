// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/stage_table.hpp>

#include <algorithm>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE stage_time stage_table::time(std::size_t first, std::size_t last, device_id d, int share) const {
  stage_time best;
  for (int g = 1; g <= degrees(d); ++g) {
    const double* t = totals(d, share, g);
    if (const double total = t[last] - t[first]; g == 1 || total < best.total_s) best = {total, 0, g};
  }
  if (training_) best.backward_s = backwards(d, share, best.degree)[last] - backwards(d, share, best.degree)[first];
  return best;
}

HETPLAN_INLINE const double* stage_table::backwards(device_id d, int share, int degree) const {
  return backward_.column(column(d, share, degree));
}

HETPLAN_INLINE double stage_table::optimizer_s(std::size_t first, std::size_t last, device_id d) const {
  if (optimizer_.empty()) return 0;
  const double* steps = optimizer_.column(d.index());
  double total = steps[last] - steps[first];
  for (const repeat& r : repeats_) {
    if (r.inside(first, last)) total -= r.optimizer_s[d.index()];
  }
  return total;
}

HETPLAN_INLINE double stage_table::state_bytes(std::size_t first, std::size_t last) const {
  double total = state_[last] - state_[first];
  for (const repeat& r : repeats_) {
    if (r.inside(first, last)) total -= r.state_bytes;
  }
  return total;
}

HETPLAN_INLINE double stage_table::trainable_bytes(std::size_t first, std::size_t last) const {
  double total = trainable_[last] - trainable_[first];
  for (const repeat& r : repeats_) {
    if (r.inside(first, last)) total -= r.trainable_bytes;
  }
  return total;
}

HETPLAN_INLINE double stage_table::tied_bytes(std::size_t first, std::size_t last) const {
  double total = 0;
  for (const repeat& r : repeats_) {
    if (r.before >= first && r.before < last && r.block >= last) total += r.trainable_bytes;
  }
  return total;
}

HETPLAN_INLINE double stage_table::activation_bytes(std::size_t first, std::size_t last) const {
  return activations_[last] - activations_[first];
}

HETPLAN_INLINE std::size_t stage_table::column(device_id d, int share, int degree) const {
  return first_column_[d.index()] + static_cast<std::size_t>(degree - 1) * max_share_ + static_cast<std::size_t>(share - 1);
}

HETPLAN_INLINE std::size_t stage_table::usable_degrees(const planning_graph& model, const device& d) {
  if (!d.interconnect) return 1;
  const auto profiled = [&](const layer& l) { return l.profile_for(d.kind) != nullptr; };
  return std::any_of(model.layers().begin(), model.layers().end(), profiled) ? 1 : static_cast<std::size_t>(d.accelerators);
}

}  // namespace HETPLAN_NAMESPACE
