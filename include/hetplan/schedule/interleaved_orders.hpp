// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Interleaved 1F1B.

#include <vector>

#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule {

/// Each device runs its stages in groups of as many microbatches as there are devices, after a warm-up one forward and one backward in
/// turn. With one stage per device it is 1F1B.
///
/// @param p        device d holds stages d, d + devices, … of a chain (see interleaved).
/// @param split    the gradient of the weights follows that of the inputs, which leaves before it; else backwards are whole.
/// Complexity      O(tasks).   Source  Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, section 2.2.
/// Throws          invalid_input (another placement; see check). Memory is not asked: the orders hold what they hold.
[[nodiscard]] orders_by_device interleaved_orders(const pipeline_times& p, bool split = false);

namespace detail {
/// Forwards and gradients of inputs of those orders; none where stages are placed otherwise.
[[nodiscard]] std::vector<std::vector<partial_orders::task>> interleaved_passes(const tick_table& t);
}  // namespace detail

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/interleaved_orders.ipp>
#endif
