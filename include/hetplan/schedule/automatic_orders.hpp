// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best orders that there is time to find.

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule::detail {

// The best orders of a small pipeline, proven.

/// What branch and bound came to.
struct optimum {
  found_orders orders;   ///< the given ones, where it found none better
  bool proven = false;   ///< all others come to as much: it was not stopped
  long long states = 0;  ///< visited
};

/// Branch and bound over what devices do next. States of the same counts in which nothing is earlier than in one seen before are left out.
///
/// Of the tasks that the device which can end one first could begin before that end, one comes next (Giffler and Thompson); but where that
/// task is a forward and memory may run short, to wait for another task is a choice as well.
///
/// @param t      with `starts_known`, where spans are the goal; else the bound may be above the optimum.
/// @param given  whose value is to be beaten.
/// @param most   states, at most.
/// Complexity    exponential in the tasks.   Source  ours; Giffler and Thompson, 1960.
[[nodiscard]] optimum proven_optimum(const tick_table& t, order_goal goal, const found_orders& given, long long most);

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

struct automatic_options {
  order_goal goal = order_goal::longest_span;
  long long steps = 20'000'000;  ///< tasks given out or replayed, about at most: some 20 ns each
  std::uint64_t seed = 1;        ///< of the last improvements
};

/// Orders, and how good they are.
struct found_by_search {
  orders_by_device orders;
  double value = 0;      ///< of the goal
  double bound = 0;      ///< no orders come to less
  bool optimal = false;  ///< proven: `value` is the bound, but for rounding
  std::string by;        ///< what found them: "eager", "rounds", …
  long long steps = 0;   ///< spent
};

/// The best of the dispatch rules, of zero-bubble rounds, of what the placement has patterns for (V shapes, interleaved stages), of beams
/// over dispatch choices, of all these for fewer microbatches, stretched, and of small changes of the best; for small pipelines then by
/// branch and bound, which proves. It ends as soon as the bound is reached.
///
/// Never worse than dispatched_orders and zero_bubble_orders by the goal, and within memory.
/// Complexity   options.steps.   Determinism  the seed decides; a change of the unit of time changes no order.
/// Source       ours, around Qi et al., 2023 and 2024; DeepCEE, section 3.3.1.
/// Throws       invalid_input (see check).
[[nodiscard]] found_by_search automatic_orders(const pipeline_times& p, const automatic_options& options = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/automatic_orders.ipp>
#endif
