// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders of the starts and ends of transfers, which a linear program takes as fixed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/core/sorting.hpp>
#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

// List scheduling of transfers, whole or cut into chunks: the most urgent chunk first.

struct list_options {
  int chunks = 1;  ///< per transfer; each has its own urgency
};

/// A chunk of a message. A sequence of all chunks, most urgent first, defines a schedule.
struct message_chunk {
  std::uint32_t message = 0;
  std::uint32_t chunk = 0;

  friend auto operator<=>(const message_chunk&, const message_chunk&) = default;
};

/// Returns rules that rank chunks by their position in a sequence, which holds every chunk of every message once.
[[nodiscard]] inline message_rules rules_of_sequence(std::size_t messages, const std::vector<message_chunk>& sequence) {
  message_rules rules(messages);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    auto& mine = rules[sequence[i].message];
    if (mine.size() <= sequence[i].chunk) mine.resize(sequence[i].chunk + 1);
    mine[sequence[i].chunk].priority = static_cast<int>(i);
  }
  return rules;
}

/// Returns the chunks by descending urgency under a priority rule, with longest paths in the graph of chunks.
///
/// A message of several transfers is as urgent as its most urgent one. Ties: by message, then by chunk.
/// Complexity  O(n log n) in the chunks, and the longest paths.
/// Throws      invalid_input (chunks < 1), invalid_model (an urgency that is not a number).
template <transfer_priority Priority = critical_path_first>
[[nodiscard]] std::vector<message_chunk> urgency_sequence(const cep_graph& cep, const Priority& priority = {},
                                                          const list_options& options = {}) {
  if (options.chunks < 1) throw invalid_input("list_schedule: chunks = " + std::to_string(options.chunks) + "; expected >= 1");
  const auto w = static_cast<std::size_t>(options.chunks);
  const tasks::task_graph g = cep.with(message_rules(cep.messages(), std::vector<chunk_rule>(w)));
  const tasks::path_times paths = tasks::longest_paths(g, cep.network());
  std::vector<double> urgency(cep.messages() * w, -std::numeric_limits<double>::infinity());
  for (std::uint32_t t = 0; t < g.transfers.size(); ++t) {  // a transfer's chunks have consecutive numbers
    const tasks::node_id n = g.node_of_transfer(t);
    const double u = priority.urgency(g.transfers[t], {paths.earliest_start_s[n], paths.alone_s[n], paths.tail_s[n]});
    if (std::isnan(u)) throw invalid_model("transfer priority: urgency(transfer " + std::to_string(t) + ") = nan; expected a number");
    const std::uint32_t whole = t / static_cast<std::uint32_t>(w);
    double& most = urgency[cep.message_of(whole) * w + t % w];
    most = std::max(most, u);
  }
  std::vector<message_chunk> sequence;
  for (std::uint32_t f = 0; f < cep.messages(); ++f) {
    for (std::uint32_t k = 0; k < w; ++k) sequence.push_back({f, k});
  }
  sort_stably(sequence, [&](const message_chunk& a, const message_chunk& b) {
    return urgency[a.message * w + a.chunk] > urgency[b.message * w + b.chunk];
  });
  return sequence;
}

/// Returns the simulated schedule of transfers by a priority rule. It may be slower than uncontrolled transfers, unlike local_search.
/// Complexity  one simulation beside urgency_sequence.
/// Throws      as urgency_sequence.   Determinism  yes.
/// Source      Dora, section 4.2. Deviation: transfers are whole by default, since under `priority` a more urgent transfer pre-empts the
///             others anyway (transfer_priority).
template <transfer_priority Priority = critical_path_first>
[[nodiscard]] network_schedule list_schedule(const cep_graph& cep, const Priority& priority = {}, const list_options& options = {}) {
  return follow(cep, rules_of_sequence(cep.messages(), urgency_sequence(cep, priority, options)));
}

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
