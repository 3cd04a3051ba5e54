// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every program about a CEP graph says of time: columns for ends, rows for dependencies.

#include <cstdint>
#include <utility>
#include <vector>

#include <hetplan/schedule/cep_graph.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::schedule {

/// Adds to a linear program the times of a CEP graph, in units of `unit_s`: a column for the end of every node and for
/// the first byte of every transfer that drains, rows for dependencies and device orders, and the makespan, which is the
/// objective. How volume gets through the network is the caller's part.
///
/// A transfer *drains* if it has volume and a resource; others take their latency.
/// Complexity  O(nodes + dependencies) columns, rows and terms.  Source: Dora, eq. 6 without capacities.
class timing_rows {
 public:
  timing_rows(const cep_graph& cep, lp_problem& lp, double unit_s) : unit_s_(unit_s) {
    const tasks::task_graph& g = cep.tasks();
    const tasks::path_times paths = tasks::longest_paths(g, cep.network());
    constexpr double rounding = 1e-12;  // a schedule may meet the bound but for the last digits
    makespan_ = lp.add_column(1, cep.bound().value() / unit_s * (1 - rounding));
    end_.resize(g.size());
    ready_.assign(g.transfers.size(), -1);
    for (tasks::node_id n = 0; n < g.size(); ++n) end_[n] = lp.add_column(0, paths.earliest_end_s[n] / unit_s);
    for (std::uint32_t t = 0; t < g.transfers.size(); ++t) {
      const tasks::transfer& x = g.transfers[t];
      if (x.volume_bytes <= 0 || g.routes[x.route].via.empty()) continue;
      const tasks::node_id n = g.node_of_transfer(t);
      ready_[t] = lp.add_column(0, (paths.earliest_start_s[n] + x.latency_s) / unit_s);
      draining_.push_back(t);
      after(lp, end_[n], ready_[t], 0);
    }
    for (tasks::node_id n = 0; n < g.size(); ++n) {
      for (const tasks::node_id m : g.successors_of(n)) follow(lp, g, n, m);
      if (paths.tail_s[n] == 0) after(lp, makespan_, end_[n], 0);
    }
    for (const auto& order : g.device_order) {
      for (std::size_t i = 1; i < order.size(); ++i) follow(lp, g, order[i - 1], order[i]);
    }
  }

  [[nodiscard]] double unit_s() const { return unit_s_; }
  [[nodiscard]] int makespan() const { return makespan_; }
  [[nodiscard]] int end(tasks::node_id n) const { return end_[n]; }
  /// Of a transfer that drains: when its first byte may go.
  [[nodiscard]] int ready(std::uint32_t transfer) const { return ready_[transfer]; }
  /// The transfers that drain, ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& draining() const { return draining_; }

 private:
  /// later >= earlier + seconds
  void after(lp_problem& lp, int later, int earlier, double seconds) const {
    lp.rows.push_back({.terms = {{later, 1}, {earlier, -1}}, .lower = seconds / unit_s_});
  }
  void follow(lp_problem& lp, const tasks::task_graph& g, tasks::node_id before, tasks::node_id n) const {
    if (g.is_compute(n)) return after(lp, end_[n], end_[before], g.computes[n].duration_s);
    if (!g.is_transfer(n)) return after(lp, end_[n], end_[before], 0);
    const int ready = ready_[n - g.computes.size()];
    after(lp, ready >= 0 ? ready : end_[n], end_[before], g.transfer_at(n).latency_s);
  }

  double unit_s_;
  int makespan_ = 0;
  std::vector<int> end_;    ///< by node
  std::vector<int> ready_;  ///< by transfer; -1 if it does not drain
  std::vector<std::uint32_t> draining_;
};

}  // namespace hetplan::schedule
