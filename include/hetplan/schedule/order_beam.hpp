// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Beam search over device orders, with a lower bound on partial orders.

#include <cstddef>
#include <vector>

#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule {

/// Objective of device orders.
enum class order_goal {
  longest_span,  ///< longest span of a device, first start to last end: the period of back-to-back iterations without a flush
  makespan       ///< length of one iteration
};

namespace detail {

/// Lower bounds on the end of every device from a partial order: work left, paths that microbatches still have to take, and the gap before
/// the next gradient, less what forwards within memory and pending weight gradients can fill.
/// Source  ours; for the empty order it contains the step law of a split backward (see step_law_spans) and the path of the last gradients
///         back from the device that has the most work before them.
class order_outlook {
 public:
  order_outlook(const tick_table& t, order_goal goal);

  /// Returns a lower bound on the goal over all completions of a partial order [ticks].
  ///
  /// @param sum  if given, receives the sum of all devices' bounds, to break ties.
  [[nodiscard]] ticks bound(const partial_orders& state, ticks* sum = nullptr);
  /// Returns the time from which the goal counts for a device.
  [[nodiscard]] ticks zero(const partial_orders& state, std::size_t device) const;

 private:
  /// Returns the earliest next forward if no microbatch is in flight on the device, else 0.
  [[nodiscard]] ticks idle_until(const partial_orders& state, std::size_t device) const;
  /// Returns how many forwards memory admits before the next gradient of a stage alone on its device, with no weight gradient pending.
  [[nodiscard]] ticks forwards_that_fit(const partial_orders& state, std::size_t stage) const;

  const tick_table* t_;
  order_goal goal_;
  std::vector<ticks> next_forward_, next_gradient_, forward_end_, backward_end_;
};

/// Value of a sequence: the goal and, to break ties, the total by which devices exceed a target.
struct order_value {
  ticks goal = never, excess = never;

  friend auto operator<=>(const order_value&, const order_value&) = default;
};
[[nodiscard]] order_value valued(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence, ticks target);
[[nodiscard]] inline ticks value_of(const tick_table& t, order_goal goal, const std::vector<partial_orders::task>& sequence) {
  return valued(t, goal, sequence, 0).goal;
}

}  // namespace detail

}  // namespace hetplan::schedule

namespace hetplan::schedule::detail {

/// A task sequence in which each task starts as early as its device and inputs allow.
struct found_orders {
  std::vector<partial_orders::task> sequence = {};
  ticks value = never;
};

/// Returns the best orders of a beam search. The beam keeps `width` partial orders with equally many tasks: those with the least bound,
/// ties by the least sum of devices' bounds. conflicting_tasks gives the continuations.
///
/// @param better_than  partial orders with a bound no better than this are dropped.
/// Complexity          O(tasks * width * stages).   Determinism  ties by parent, stage and phase.
/// Source              ours; the branching: Giffler and Thompson, 1960.
[[nodiscard]] found_orders beam_search(const tick_table& t, order_goal goal, std::size_t width, ticks better_than = never,
                                       const std::vector<int>& warmup = {});

/// Lists the candidates for the next task: of the device whose next task can end first, all tasks that can start before that end.
/// Source  Giffler and Thompson, Algorithms for Solving Production-Scheduling Problems, 1960: these choices lead to some optimal orders.
void conflicting_tasks(const partial_orders& state, room r, std::vector<partial_orders::task>& tasks, std::vector<ticks>& starts,
                       const std::vector<int>& warmup = {});

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/order_beam.ipp>
#endif
