// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders that grow by forwards and gradients of inputs, while gradients of weights fill what lies between.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule::detail {

/// Which gaps before a forward or a gradient of inputs take a gradient of weights.
enum class gap_rule {
  whole,    ///< those that are long enough
  largest,  ///< and shorter ones where the device would become the one with the most idle time so far
  any
};

/// Complexity  O(tasks * stages of a device) for all tasks.
/// Source      Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1: gaps; gradients of weights where memory is short.
class gap_filler {
 public:
  /// @param gaps  by device; lives as long as this.
  gap_filler(const tick_table& t, const std::vector<gap_rule>& gaps) : state_(t), gaps_(&gaps), idle_(t.devices.size(), 0) {}

  /// Gives out a forward or a gradient of inputs; false: its inputs are not known yet, or no gradient of weights makes room for it.
  bool place(partial_orders::task a);
  /// Gives out the next gradient of weights of a device; false: there is none.
  bool place_weight(std::size_t device);
  /// All gradients of weights that are left.
  void finish();

  [[nodiscard]] const partial_orders& state() const { return state_; }
  [[nodiscard]] const std::vector<partial_orders::task>& sequence() const { return sequence_; }

 private:
  [[nodiscard]] bool fills(std::size_t device, ticks gap) const;
  /// The stage whose gradient of weights is next; none: as many as there are.
  [[nodiscard]] std::size_t weight_stage(std::size_t device) const;

  partial_orders state_;
  const std::vector<gap_rule>* gaps_;
  std::vector<ticks> idle_;
  std::vector<partial_orders::task> sequence_;
};

/// Forwards and gradients of inputs in given orders of devices, the earliest first, gradients of weights between them.
///
/// Where memory does not let in a forward that is next, the first gradient behind it that can run goes before it.
/// @param pull  a forward that is ready goes into a gap before its turn, if it fits and leaves room for those before it.
/// Complexity  O(tasks * (devices + stages of a device)).   Source  as gap_filler.
[[nodiscard]] std::vector<partial_orders::task> filled_orders(const tick_table& t, std::vector<std::vector<partial_orders::task>> passes,
                                                              const std::vector<gap_rule>& gaps, bool pull = false);

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/gap_filler.ipp>
#endif
