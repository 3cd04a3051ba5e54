// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The realised critical chain: which tasks and transfers made a run as long as it was.

#include <algorithm>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/waits.hpp>
#include <hetplan/tasks/critical_path.hpp>

namespace hetplan {

/// A part [start_s, end_s) of the run that one task or transfer accounts for. The four parts below add up to its length.
struct critical_link {
  tasks::node_id node = no_node;
  double start_s = 0;  ///< the end of the link before it; 0 for the first
  double end_s = 0;
  wait_reason why = wait_reason::start_of_run;
  tasks::node_id because = no_node;  ///< the link before it; no_node for the first
  double held_s = 0;                 ///< until it could start: a release time
  double latency_s = 0;              ///< of a transfer's route
  double own_s = 0;                  ///< a task's duration; a transfer's volume at its route's peak rate
  double lost_s = 0;                 ///< a transfer: to others on its route; a task: to a slower device

  [[nodiscard]] double duration_s() const { return end_s - start_s; }
  friend bool operator==(const critical_link&, const critical_link&) = default;
};

/// Walks back from the node with the last end to time 0, always to what the node waited for last.
///
/// @param t    a trace of `g` on `net`; if it was stopped, the chain of what ended last.
/// @return     in time order; links touch, the first starts at 0, the last ends at the latency. Empty for an empty graph.
/// Units       seconds.  Complexity  that of waits.
/// Determinism ties: the smaller node.
/// Source      semantics, section 6: the rules by which tasks and transfers start, read backwards.
[[nodiscard]] inline std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net) {
  const waits waited(g, t);
  std::vector<critical_link> chain;
  tasks::node_id n = no_node;
  for (tasks::node_id i = 0; i < g.computes.size() + g.transfers.size(); ++i) {
    if (n == no_node || waited.when(i).end_s > waited.when(n).end_s) n = i;
  }
  double end_s = t.latency.value();
  while (n != no_node) {
    const wait w = waited.of(n);
    critical_link link{
        .node = n, .start_s = w.because == no_node ? 0 : std::min(w.since_s, end_s), .end_s = end_s, .why = w.why, .because = w.because};
    double left_s = link.duration_s();
    const auto take = [&](double wanted_s) {
      const double taken_s = std::clamp(wanted_s, 0.0, left_s);
      left_s -= taken_s;
      return taken_s;
    };
    link.held_s = take(waited.when(n).start_s - link.start_s);
    if (g.is_compute(n)) {
      link.own_s = take(g.computes[n].duration_s);
    } else {
      const tasks::transfer& x = g.transfer_at(n);
      double peak_s = 0;
      for (const resource_use& u : g.routes[x.route].via) peak_s = std::max(peak_s, tasks::work_s(x, u, net));
      link.latency_s = take(x.latency_s);
      link.own_s = take(peak_s);
    }
    if (left_s <= 1e-12 * t.latency.value()) link.own_s += left_s;
    else link.lost_s = left_s;  // rounding is no loss
    chain.push_back(link);
    end_s = link.start_s;
    n = w.because;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

}  // namespace hetplan
