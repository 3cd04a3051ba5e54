// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A beam search over what devices do next.

#include <cstddef>
#include <vector>

#include <hetplan/schedule/order_outlook.hpp>

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

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_beam.ipp>
#endif
