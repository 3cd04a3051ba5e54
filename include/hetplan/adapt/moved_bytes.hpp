// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How many bytes a device needs of a layer before it can go on with it.

#include <vector>

#include <hetplan/adapt/holdings.hpp>

namespace hetplan::adapt {

/// Does nothing change these weights? Outside training nothing does, in training the frozen ones stay.
[[nodiscard]] inline bool is_immutable(const layer& l, const workload& w) { return w.mode != mode::training || !l.trainable; }

/// What a device needs of a layer to go on: W, and with its optimizer's state W (1 + optimizer_factor) where it learns.
///
/// Gradients are not moved: a switch happens between iterations.  Source  semantics, section 10.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w) {
  return is_immutable(l, w) ? l.weight : l.weight * (1 + w.optimizer_factor);
}
/// Its optimizer's state alone.
[[nodiscard]] inline bytes moved_state(const layer& l, const workload& w) {
  return is_immutable(l, w) ? bytes{} : l.weight * w.optimizer_factor;
}
/// Its weights with these parts of the optimizer's state.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w, const std::vector<state_part>& parts) {
  if (parts == std::vector<state_part>{{}}) return moved_bytes(l, w);
  bytes total = l.weight;
  for (const state_part& p : parts) total += moved_state(l, w) * p.size();
  return total;
}

}  // namespace hetplan::adapt
