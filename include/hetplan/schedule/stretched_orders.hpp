// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders for few microbatches, made into orders for more by repeating what lies between two states that look alike.

#include <vector>

#include <hetplan/schedule/order_beam.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// The best of the ways to repeat a part of a sequence until it has the microbatches of `more`; none where no part of it does.
///
/// Two states look alike if each stage is as many tasks ahead of its neighbours in the one as in the other; then the part between can
/// follow itself, and memory holds as much as before.
/// @param few   what `sequence` was made for: `more`, but for the number of microbatches.
/// Complexity   O(tasks of few * tasks of more).   Source  ours; the building blocks of Qi et al., 2024, are such parts.
[[nodiscard]] found_orders stretched_orders(const tick_table& few, const tick_table& more, order_goal goal,
                                            const std::vector<partial_orders::task>& sequence);

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/stretched_orders.ipp>
#endif
