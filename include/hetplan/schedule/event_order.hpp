// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which order transfers start and end: what a linear program takes as decided.

#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

// What every program about a CEP graph says of time: columns for ends, rows for dependencies.

/// Does a transfer have volume and a resource? Others take their latency and share nothing.
[[nodiscard]] bool drains(const tasks::task_graph& g, const tasks::transfer& t);

/// Part [from_s, to_s) of a run: what has begun before stays as it was, what begins later comes as much earlier as the
/// whole run ends earlier. By default all of it.
struct time_window {
  double from_s = -std::numeric_limits<double>::infinity();
  double to_s = std::numeric_limits<double>::infinity();
};

/// column + constant, in the program's unit; column -1: only the constant.
struct lp_time {
  int column = -1;
  double constant = 0;
};

/// Adds to a linear program the times of a window of a run, in units of the run's latency: a column for the end of every
/// task that starts in the window and for the first byte and the end of every transfer that drains in it, rows for
/// dependencies and device orders, and the makespan, which is the objective. How volume gets through the network is the
/// caller's part.
///
/// Complexity  O(nodes + dependencies); columns and rows only for the window.  Source: Dora, eq. 6 without capacities.
class timing_rows {
 public:
  /// @param run  a trace of cep.tasks(), or of the same whole transfers with priorities.
  timing_rows(const cep_graph& cep, const trace& run, const time_window& window, lp_problem& lp);

  [[nodiscard]] double unit_s() const { return unit_s_; }
  [[nodiscard]] lp_time makespan() const { return makespan_; }
  [[nodiscard]] lp_time end(tasks::node_id n) const { return end_[n]; }
  /// Of a transfer that drains: when its first byte may go.
  [[nodiscard]] lp_time ready(std::uint32_t transfer) const { return ready_[transfer]; }
  /// The transfers that drain in the window, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& draining() const { return draining_; }
  /// A moment of the run that stays, or moves with the makespan.
  [[nodiscard]] lp_time moment(double at_s) const;
  /// Adds: later >= earlier + seconds; nothing where the two cannot come closer.
  void after(lp_problem& lp, lp_time later, lp_time earlier, double seconds) const;

 private:
  /// A time of a node: as it was where it begins before the window, with the makespan where it is not before the window's
  /// end, else a column.
  [[nodiscard]] lp_time time(lp_problem& lp, double begins_s, double late_s, double at_s, double earliest_s) const;

  void add_times(lp_problem& lp, tasks::node_id n);

  void follow(lp_problem& lp, tasks::node_id before, tasks::node_id n) const;

  /// When barriers were passed: with the last of what they join.
  void find_barriers();

  const cep_graph& cep_;
  const trace& run_;
  time_window window_;
  double unit_s_;
  tasks::path_times paths_;
  lp_time makespan_;
  std::vector<double> barrier_s_;  ///< by node; of barriers
  std::vector<lp_time> end_;       ///< by node
  std::vector<lp_time> ready_;     ///< by transfer; of those that drain
  std::vector<std::uint32_t> draining_;
};

/// The first byte of a transfer may go, or its last one has arrived.
struct transfer_event {
  std::uint32_t transfer = 0;
  bool ends = false;

  friend bool operator==(const transfer_event&, const transfer_event&) = default;
};

/// Starts and ends of the transfers that drain, in a window of a run; a transfer's start stands before its end.
using event_order = std::vector<transfer_event>;

/// The order of a run's events. At one time: ends before starts, but no end before its own start; then by transfer.
///
/// @param t    a trace of cep.tasks(), or of the same transfers with priorities, in one piece each.
/// Complexity  O(n log n) in the transfers.
/// Source      Dora, section 4.2: who overlaps with whom is what makes eq. 6 not linear, so it is decided first; ours.
[[nodiscard]] event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window = {});

/// Flows by their last end in the order, each in one piece: a sequence that lets ends come as the order wants them.
[[nodiscard]] std::vector<message_chunk> sequence_of_order(const cep_graph& cep, const event_order& order);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/event_order.ipp>
#endif
