// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Search for the best device orders of a pipeline within a limit of steps.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>
#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule::detail {

struct optimum {
  found_orders orders;  ///< the best orders; the given ones if none are better
  bool proven = false;  ///< true if the search was not stopped, so that `orders` is optimal
  long long states = 0;
};

/// Returns the best orders by branch and bound over the next task of a device. A state is pruned if no time in it is earlier than in a
/// visited state with the same task counts.
///
/// Branching (Giffler and Thompson): of all devices, take the one whose next task can end first. One of its tasks that can start before
/// that end comes next. If that task is a forward and memory may run short, one more branch postpones the forward.
///
/// @param t      needs `starts_known` if the goal is a span; otherwise the bound may exceed the optimum.
/// @param given  orders whose value is to be beaten.
/// @param most   limit on the states visited.
/// Complexity    exponential in the tasks.   Source  ours; Giffler and Thompson, 1960.
[[nodiscard]] optimum proven_optimum(const tick_table& t, order_goal goal, const found_orders& given, long long most);

}  // namespace hetplan::schedule::detail

namespace hetplan::schedule {

struct automatic_options {
  order_goal goal = order_goal::longest_span;
  long long steps = 20'000'000;  ///< approximate limit on tasks scheduled or replayed; some 20 ns each
  std::uint64_t seed = 1;        ///< seed of the local search
};

/// Result of automatic_orders.
struct found_by_search {
  orders_by_device orders;
  double value = 0;      ///< objective value of `orders`
  double bound = 0;      ///< lower bound on the value of all orders
  bool optimal = false;  ///< true if `value` equals `bound` up to rounding
  std::string by;        ///< method that found `orders`: "eager", "rounds", …
  long long steps = 0;   ///< steps spent
};

/// Returns the best orders of several methods: dispatch rules, zero-bubble rounds, patterns of the placement (V shapes, interleaved
/// stages), beam search, stretched orders of fewer microbatches, local search from the best of these, and for small pipelines branch and
/// bound, which proves optimality. The search ends as soon as the lower bound is reached.
///
/// The orders are never worse by the goal than dispatched_orders and zero_bubble_orders, and fit into memory.
/// Complexity   options.steps.   Determinism  fixed by the seed; a change of the unit of time changes no order.
/// Source       ours, around Qi et al., 2023 and 2024; DeepCEE, section 3.3.1.
/// Throws       invalid_input (see check).
[[nodiscard]] found_by_search automatic_orders(const pipeline_times& p, const automatic_options& options = {});

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/automatic_orders.ipp>
#endif
