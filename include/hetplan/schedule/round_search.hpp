// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders in rounds, over warm-ups and over which gaps are filled.

#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/round_orders.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

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

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/round_search.ipp>
#endif
