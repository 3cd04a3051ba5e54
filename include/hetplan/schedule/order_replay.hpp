// SPDX-License-Identifier: BSL-1.0
#pragma once
/// When the tasks of given orders run.

#include <vector>

#include <hetplan/schedule/pipeline_times.hpp>

namespace hetplan::schedule {

/// What became of orders.
struct order_timeline {
  struct task {
    order_entry what;
    double start = 0, end = 0;
  };
  std::vector<std::vector<task>> tasks;  ///< by device, those that ran
  std::vector<double> spans;             ///< by device: first start to last end
  std::vector<double> peaks;             ///< by device: activations held at once
  double makespan = 0;
  bool ends = true;  ///< false: a task waits for one that comes later on its own device, or the orders lack a task that one needs

  [[nodiscard]] double longest_span() const;
};

/// Runs each task as soon as its device has ended what stands before it and its inputs have arrived. Memory is counted, not limited.
///
/// @param orders  as in a plan: `backward_input` is the whole backward of a stage whose weights' gradient is in no order.
/// Complexity     O(tasks * edges of a stage).   Source  semantics, sections 5 and 6.
/// Throws         invalid_input (an entry of a stage of another device, of an unknown microbatch, or listed twice).
[[nodiscard]] order_timeline replay_orders(const pipeline_times& p, const orders_by_device& orders);

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_replay.ipp>
#endif
