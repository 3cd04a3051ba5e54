// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/critical_chain.hpp>

#include <algorithm>

#include <hetplan/tasks/critical_path.hpp>

namespace hetplan {

HETPLAN_INLINE std::vector<critical_link> critical_chain(const tasks::task_graph& g, const trace& t, const network& net) {
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
