// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A beam search over what devices do next.

#include <cstddef>
#include <vector>

#include <hetplan/schedule/partial_orders.hpp>

namespace hetplan::schedule {

// What orders that are being made can come to at best.

/// What orders are judged by.
enum class order_goal {
  longest_span,  ///< of a device, first start to last end: the period of iterations that follow each other without a flush
  makespan       ///< all of an iteration
};

namespace detail {

/// Bounds on the end of every device, from the work that is left, the ways that microbatches still have to go, and the gap before the
/// next gradient comes, as far as memory and the weights' gradients at hand cannot fill it.
///
/// Source  ours; with nothing given out it contains the step law of a split backward (see step_law_spans) and the way of the
///         gradients home from the device that has most to do before them.
class order_outlook {
 public:
  order_outlook(const tick_table& t, order_goal goal);

  /// At least what the goal comes to, whatever is done from here; in ticks.
  ///
  /// @param sum  where given: what all devices come to at least, together, which tells equals apart.
  [[nodiscard]] ticks bound(const partial_orders& state, ticks* sum = nullptr);
  /// From when the goal counts for a device.
  [[nodiscard]] ticks zero(const partial_orders& state, std::size_t device) const;

 private:
  /// The next forward, where a device has nothing else to do.
  [[nodiscard]] ticks idle_until(const partial_orders& state, std::size_t device) const;
  /// Before the next gradient of a stage that has its device for itself, with all gradients of weights out of the way.
  [[nodiscard]] ticks forwards_that_fit(const partial_orders& state, std::size_t stage) const;

  const tick_table* t_;
  order_goal goal_;
  std::vector<ticks> next_forward_, next_gradient_, forward_end_, backward_end_;
};

/// What a sequence comes to: by the goal, and by how much devices exceed a target together, which tells equals apart.
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

/// A sequence of tasks, each given out as early as its device and its inputs allow.
struct found_orders {
  std::vector<partial_orders::task> sequence = {};
  ticks value = never;
};

/// Keeps `width` partial orders of the same number of tasks, those with the least bound; among equals those whose devices come to
/// least together. Each is continued by the tasks that the device which can end one first could begin before that end.
///
/// @param better_than  partial orders that cannot come to less are dropped.
/// Complexity          O(tasks * width * stages).   Determinism  ties by parent, stage and phase.
/// Source              ours; whom to continue: Giffler and Thompson, 1960.
[[nodiscard]] found_orders beam_search(const tick_table& t, order_goal goal, std::size_t width, ticks better_than = never,
                                       const std::vector<int>& warmup = {});

/// The tasks of which one comes next: those that the device which can end one first could begin before that end.
///
/// Source  Giffler and Thompson, Algorithms for Solving Production-Scheduling Problems, 1960: some best orders are among those that
///         these choices lead to.
void conflicting_tasks(const partial_orders& state, room r, std::vector<partial_orders::task>& tasks, std::vector<ticks>& starts,
                       const std::vector<int>& warmup = {});

}  // namespace hetplan::schedule::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/order_beam.ipp>
#endif
