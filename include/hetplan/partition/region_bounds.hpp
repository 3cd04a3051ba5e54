// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What no split that is better than the best known can do: the windows and limits of split_exactly's cells.

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/partition/region_cells.hpp>

namespace HETPLAN_NAMESPACE::partition::detail {

/// By sets of regions, the bit g for region g, and positions.
///
/// Complexity  O(2^R R + R^2 L^2).
/// Source      ours.
class region_bounds {
 public:
  region_bounds(const region_cells& cells, region_use use, region_cost cost, int microbatches, double best_s);

  /// From the first layer on, the stages of a set reach so far at most, each below the best known.
  [[nodiscard]] std::size_t furthest(std::size_t set) const { return furthest_[set]; }
  /// To the last layer, from here on at the earliest.
  [[nodiscard]] std::size_t earliest(std::size_t set) const { return earliest_[set]; }
  /// What labels at a position must stay below where `others` regions may lie before it, all of them or any.
  [[nodiscard]] region_cells::label limit(std::size_t others, std::size_t i, double best_s) const {
    constexpr double inf = region_cells::inf;
    const region_cells::label before = before_s_[others * positions_ + i];
    return before.eq1 < inf ? region_cells::label{best_s - before.eq1, best_s - before.all} : region_cells::label{-inf, -inf};
  }

 private:
  void make_reach(const region_cells& cells, double best_s);
  /// What at least lies before a position, in any regions, one even twice: sums of F + c + max(0, c - F), and of F + c.
  /// @param link_turns  microbatches that a link passes one after the other; 0: not counted.
  void make_fill(const region_cells& cells, region_use use, int link_turns, double best_s);

  std::size_t n_, positions_;
  std::vector<std::size_t> furthest_, earliest_;
  std::vector<region_cells::label> before_s_;  ///< by number of regions that are left, position
};

}  // namespace HETPLAN_NAMESPACE::partition::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/region_bounds.ipp>
#endif
