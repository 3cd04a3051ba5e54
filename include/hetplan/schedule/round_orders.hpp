// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders made in rounds: a gradient runs up the pipeline, then a microbatch runs down, and gaps are filled with gradients of weights.

#include <vector>

#include <hetplan/schedule/order_outlook.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// Which gaps before a forward or a gradient of inputs take a gradient of weights.
enum class gap_rule {
  whole,    ///< those that are long enough
  largest,  ///< and shorter ones where the device would become the one with the most idle time so far
  any
};

struct round_options {
  std::vector<int> warmup;           ///< by stage: forwards before its first gradient, as far as memory goes
  std::vector<gap_rule> gaps;        ///< by device
  bool skip = false;                 ///< a stage more than one forward ahead of its consumers lets one out that would delay a gradient
};

/// Forwards that each stage can do before its first gradient comes.
///
/// @param one_more  and the one during which it comes.
[[nodiscard]] std::vector<int> filling_warmup(const tick_table& t, bool one_more);

/// Complexity  O(tasks * stages of a device).   Source  Qi et al., Zero Bubble Pipeline Parallelism, 2023, section 3.1.
[[nodiscard]] std::vector<partial_orders::task> orders_in_rounds(const tick_table& t, const round_options& options);

/// What a sequence comes to, in ticks.
[[nodiscard]] ticks value_of(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence);

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/round_orders.ipp>
#endif
