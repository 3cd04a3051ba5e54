// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders made in rounds: a gradient runs up the pipeline, then a microbatch runs down, and gaps are filled with gradients of weights.

#include <vector>

#include <hetplan/schedule/gap_filler.hpp>
#include <hetplan/schedule/order_outlook.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

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

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/round_orders.ipp>
#endif
