// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders of the starts and ends of transfers, which a linear program takes as fixed.

#include <cstdint>
#include <limits>
#include <vector>

#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

/// True if a transfer has volume and a resource. Other transfers only wait for their latency and share nothing.
[[nodiscard]] bool drains(const tasks::task_graph& g, const tasks::transfer& t);

/// Part [from_s, to_s) of a run, by default all of it. What begins before it keeps its time; what begins after it moves with the run's
/// end.
struct time_window {
  double from_s = -std::numeric_limits<double>::infinity();
  double to_s = std::numeric_limits<double>::infinity();
};

/// A time in the program's unit: the value of a column plus a constant. With column -1 it is the constant alone.
struct lp_time {
  int column = -1;
  double constant = 0;
};

/// Adds to a linear program the timing of a window of a run, in units of the run's latency. Columns are the end of every task that starts
/// in the window, and the first byte and the end of every transfer that drains in it. Rows are dependencies and device orders. The
/// objective is the makespan. Capacities of the network are left to the caller.
/// Complexity  O(nodes + dependencies); columns and rows only for the window.  Source: Dora, eq. 6 without capacities.
class timing_rows {
 public:
  /// @param run  a trace of cep.tasks(), or of the same uncut transfers with priorities.
  timing_rows(const cep_graph& cep, const trace& run, const time_window& window, lp_problem& lp);

  [[nodiscard]] double unit_s() const { return unit_s_; }
  [[nodiscard]] lp_time makespan() const { return makespan_; }
  [[nodiscard]] lp_time end(tasks::node_id n) const { return end_[n]; }
  /// Returns the earliest time of the first byte of a transfer that drains.
  [[nodiscard]] lp_time ready(std::uint32_t transfer) const { return ready_[transfer]; }
  /// Returns the transfers that drain in the window, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& draining() const { return draining_; }
  /// Returns a time of the run that is constant before the window's end and moves with the makespan from then on.
  [[nodiscard]] lp_time moment(double at_s) const;
  /// Adds the row `later >= earlier + seconds`, unless both share a column: their distance is then constant.
  void after(lp_problem& lp, lp_time later, lp_time earlier, double seconds) const;

 private:
  /// Returns the time of a node: constant if it begins before the window, tied to the makespan if after it, else a new column.
  [[nodiscard]] lp_time time(lp_problem& lp, double begins_s, double late_s, double at_s, double earliest_s) const;

  void add_times(lp_problem& lp, tasks::node_id n);

  void follow(lp_problem& lp, tasks::node_id before, tasks::node_id n) const;

  /// Sets the time of each barrier to the last end of its predecessors.
  void find_barriers();

  const cep_graph& cep_;
  const trace& run_;
  time_window window_;
  double unit_s_;
  tasks::path_times paths_;
  lp_time makespan_;
  std::vector<double> barrier_s_;  ///< by node; set for barriers
  std::vector<lp_time> end_;       ///< by node
  std::vector<lp_time> ready_;     ///< by transfer; set for those that drain
  std::vector<std::uint32_t> draining_;
};

/// Start or end of a transfer: its first byte may move, or its last byte has arrived.
struct transfer_event {
  std::uint32_t transfer = 0;
  bool ends = false;

  friend bool operator==(const transfer_event&, const transfer_event&) = default;
};

/// Starts and ends of the transfers that drain in a window of a run; a transfer's start precedes its end.
using event_order = std::vector<transfer_event>;

/// Returns the order of a run's events. Ties: ends before starts, but no end before its own start; then by transfer.
///
/// @param t    a trace of cep.tasks(), or of the same uncut transfers with priorities.
/// Complexity  O(n log n) in the transfers.
/// Source      Dora, section 4.2. Fixing the order first is ours: which transfers overlap is what makes eq. 6 nonlinear.
[[nodiscard]] event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window = {});

/// Returns the messages, uncut, by their last end in the order: priorities under which transfers can end in that order.
[[nodiscard]] std::vector<message_chunk> sequence_of_order(const cep_graph& cep, const event_order& order);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/event_order.ipp>
#endif
