// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders in rounds, over warm-ups and over which gaps are filled.

#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule::detail {

// Orders made in rounds: a gradient runs up the pipeline, then a microbatch runs down, and gaps are filled with gradients of weights.

struct round_options {
  std::vector<int> warmup;     ///< by stage: forwards before its first gradient, as far as memory goes
  std::vector<gap_rule> gaps;  ///< by device
  std::vector<bool> skip;      ///< by stage: where it is more than one forward ahead, it lets one out that would delay a gradient
};

/// Forwards that each stage can do before its first gradient comes.
///
/// @param one_more  and the one during which it comes.
[[nodiscard]] std::vector<int> filling_warmup(const tick_table& t, bool one_more);

/// Complexity  O(tasks * stages of a device).   Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options);

/// The settings that the paper's grid has: with and without one more forward and letting one out, three rules for gaps.
///
/// Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<round_options> round_grid(const tick_table& t);

/// The best of the grid.
[[nodiscard]] found_orders best_rounds(const tick_table& t, order_goal goal);

/// From each setting of the grid: changes of one stage, or of all up to it, as long as one is better, by the goal and by how much devices
/// exceed `target` together.
///
/// @param steps       tasks given out, about at most; what is left stays.
/// Complexity  steps.   Source  ours.
[[nodiscard]] found_orders searched_rounds(const tick_table& t, order_goal goal, ticks target, long long& steps);

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/round_search.ipp>
#endif
