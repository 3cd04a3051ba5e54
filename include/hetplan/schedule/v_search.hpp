// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders of a V shape that repeat a block.

#include <cstddef>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/v_blocks.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

struct v_orders {
  std::vector<found_orders> as_they_are;  ///< one rule for all gaps; the best first
  std::vector<found_orders> gaps_chosen;  ///< these, with other rules for single devices as long as one is better
};

/// Blocks, and ZB-V's passes.
///
/// @param most   of each kind.
/// @param steps  tasks given out, about at most; what is left stays.
/// Complexity    steps.   Source  Qi et al., Pipeline Parallelism with Controllable Memory, 2024; which gaps are filled is ours.
[[nodiscard]] v_orders searched_v(const tick_table& t, order_goal goal, ticks target, std::size_t most, long long& steps);

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/v_search.ipp>
#endif
