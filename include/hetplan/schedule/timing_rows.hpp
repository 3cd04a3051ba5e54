// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every program about a CEP graph says of time: columns for ends, rows for dependencies.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::schedule {

/// Does a transfer have volume and a resource? Others take their latency and share nothing.
[[nodiscard]] inline bool drains(const tasks::task_graph& g, const tasks::transfer& t) {
  return t.volume_bytes > 0 && !g.routes[t.route].via.empty();
}

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
  timing_rows(const cep_graph& cep, const trace& run, const time_window& window, lp_problem& lp)
      : cep_(cep), run_(run), window_(window), unit_s_(run.latency.value()), paths_(tasks::longest_paths(cep.tasks(), cep.network())) {
    constexpr double rounding = 1e-12;  // a run may meet the bound but for the last digits
    const tasks::task_graph& g = cep.tasks();
    makespan_ = {lp.add_column(1, cep.bound().value() / unit_s_ * (1 - rounding)), 0};
    end_.resize(g.size());
    ready_.resize(g.transfers.size());
    find_barriers();
    for (tasks::node_id n = 0; n < g.size(); ++n) add_times(lp, n);
    for (tasks::node_id n = 0; n < g.size(); ++n) {
      for (const tasks::node_id m : g.successors_of(n)) follow(lp, n, m);
      if (paths_.tail_s[n] == 0) after(lp, makespan_, end_[n], 0);
    }
    for (const auto& order : g.device_order) {
      for (std::size_t i = 1; i < order.size(); ++i) follow(lp, order[i - 1], order[i]);
    }
    for (std::size_t t = 0; t < g.transfers.size(); ++t) {  // what moves as a block keeps its releases
      const double latency_s = g.transfers[t].latency_s, ready_s = run.transfers[t].start_s + latency_s;
      if (ready_s >= window.to_s) after(lp, moment(ready_s), {-1, (g.transfers[t].release_s + latency_s) / unit_s_}, 0);
    }
  }

  [[nodiscard]] double unit_s() const { return unit_s_; }
  [[nodiscard]] lp_time makespan() const { return makespan_; }
  [[nodiscard]] lp_time end(tasks::node_id n) const { return end_[n]; }
  /// Of a transfer that drains: when its first byte may go.
  [[nodiscard]] lp_time ready(std::uint32_t transfer) const { return ready_[transfer]; }
  /// The transfers that drain in the window, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& draining() const { return draining_; }
  /// A moment of the run that stays, or moves with the makespan.
  [[nodiscard]] lp_time moment(double at_s) const {
    if (at_s < window_.to_s) return {-1, at_s / unit_s_};
    return {makespan_.column, (at_s - run_.latency.value()) / unit_s_};
  }
  /// Adds: later >= earlier + seconds; nothing where the two cannot come closer.
  void after(lp_problem& lp, lp_time later, lp_time earlier, double seconds) const {
    if (later.column == earlier.column) return;
    lp_problem::row row{.terms = {}, .lower = seconds / unit_s_ - later.constant + earlier.constant};
    if (later.column >= 0) row.terms.emplace_back(later.column, 1);
    if (earlier.column >= 0) row.terms.emplace_back(earlier.column, -1);
    lp.rows.push_back(std::move(row));
  }

 private:
  /// A time of a node: as it was where it begins before the window, with the makespan where it is not before the window's
  /// end, else a column.
  [[nodiscard]] lp_time time(lp_problem& lp, double begins_s, double late_s, double at_s, double earliest_s) const {
    if (late_s >= window_.to_s) return moment(at_s);
    if (begins_s < window_.from_s) return {-1, at_s / unit_s_};
    return {lp.add_column(0, earliest_s / unit_s_ * (1 - 1e-12)), 0};
  }

  void add_times(lp_problem& lp, tasks::node_id n) {
    const tasks::task_graph& g = cep_.tasks();
    const double earliest_s = paths_.earliest_end_s[n];
    if (!g.is_compute(n) && !g.is_transfer(n)) {
      end_[n] = time(lp, barrier_s_[n], barrier_s_[n], barrier_s_[n], earliest_s);
      return;
    }
    const interval& when = g.is_compute(n) ? run_.computes[n] : run_.transfers[n - g.computes.size()];
    if (g.is_compute(n) || !drains(g, g.transfer_at(n))) {
      end_[n] = time(lp, when.start_s, when.start_s, when.end_s, earliest_s);
      return;
    }
    const auto t = static_cast<std::uint32_t>(n - g.computes.size());
    const double ready_s = when.start_s + g.transfers[t].latency_s;
    ready_[t] = time(lp, when.start_s, ready_s, ready_s, paths_.earliest_start_s[n] + g.transfers[t].latency_s);
    end_[n] = time(lp, when.end_s, when.end_s, when.end_s, earliest_s);
    if (ready_s >= window_.to_s || when.end_s < window_.from_s) return;
    draining_.push_back(t);
    after(lp, end_[n], ready_[t], 0);
  }

  void follow(lp_problem& lp, tasks::node_id before, tasks::node_id n) const {
    const tasks::task_graph& g = cep_.tasks();
    if (g.is_compute(n)) return after(lp, end_[n], end_[before], g.computes[n].duration_s);
    if (!g.is_transfer(n)) return after(lp, end_[n], end_[before], 0);
    const bool draining = drains(g, g.transfer_at(n));
    after(lp, draining ? ready_[n - g.computes.size()] : end_[n], end_[before], g.transfer_at(n).latency_s);
  }

  /// When barriers were passed: with the last of what they join.
  void find_barriers() {
    const tasks::task_graph& g = cep_.tasks();
    barrier_s_.assign(g.size(), 0);
    for (const tasks::node_id n : paths_.order) {
      const double end_s = g.is_compute(n)    ? run_.computes[n].end_s
                           : g.is_transfer(n) ? run_.transfers[n - g.computes.size()].end_s
                                              : barrier_s_[n];
      for (const tasks::node_id m : g.successors_of(n)) barrier_s_[m] = std::max(barrier_s_[m], end_s);
    }
  }

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

}  // namespace hetplan::schedule
