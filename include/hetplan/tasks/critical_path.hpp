// SPDX-License-Identifier: BSL-1.0
#pragma once
/// No schedule of this plan is faster: its critical path, its busiest device and its busiest resource.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// Earliest end of every node [s] if every transfer had its route to itself.
///
/// @return      one entry per node; infinite for nodes behind a cycle (validated plans have none).
/// Complexity   O(nodes + dependencies).
/// Source       semantics, section 9 (c).
[[nodiscard]] inline std::vector<double> earliest_ends_s(const task_graph& g, const network& net) {
  std::vector<double> ready(g.size(), 0), end(g.size(), std::numeric_limits<double>::infinity());
  std::vector<std::uint32_t> waiting = g.predecessors;
  std::vector<node_id> next_on_device(g.computes.size(), static_cast<node_id>(g.size()));
  for (const auto& order : g.device_order) {
    for (std::size_t i = 1; i < order.size(); ++i) {
      next_on_device[order[i - 1]] = order[i];
      ++waiting[order[i]];
    }
  }
  std::vector<double> seconds_per_byte(g.routes.size(), 0);
  for (std::size_t r = 0; r < g.routes.size(); ++r) {
    for (const resource_use& u : g.routes[r].via) {
      seconds_per_byte[r] = std::max(seconds_per_byte[r], u.weight / net[u.resource].capacity.value());
    }
  }
  const auto duration = [&](node_id n) {
    if (g.is_compute(n)) return g.computes[n].duration_s;
    if (!g.is_transfer(n)) return 0.0;
    const transfer& t = g.transfer_at(n);
    return t.latency_s + t.volume_bytes * seconds_per_byte[t.route];
  };
  std::vector<node_id> stack;
  for (node_id n = 0; n < g.size(); ++n) {
    if (waiting[n] == 0) stack.push_back(n);
  }
  while (!stack.empty()) {
    const node_id n = stack.back();
    stack.pop_back();
    const double start = g.is_transfer(n) ? std::max(ready[n], g.transfer_at(n).release_s) : ready[n];
    end[n] = start + duration(n);
    const auto reach = [&](node_id m) {
      ready[m] = std::max(ready[m], end[n]);
      if (--waiting[m] == 0) stack.push_back(m);
    };
    for (const node_id m : g.successors_of(n)) reach(m);
    if (g.is_compute(n) && next_on_device[n] < g.size()) reach(next_on_device[n]);
  }
  return end;
}

/// max(critical path, busiest device, busiest resource): a lower bound on the latency of this plan.
[[nodiscard]] inline seconds schedule_bound(const task_graph& g, const network& net) {
  double bound = 0;
  for (const double end : earliest_ends_s(g, net)) bound = std::max(bound, end);
  std::vector<double> busy(g.device_order.size(), 0), load(net.resources().size(), 0);
  for (const compute_task& t : g.computes) busy[t.device.index()] += t.duration_s;
  for (const transfer& t : g.transfers) {
    for (const resource_use& u : g.routes[t.route].via) {
      load[u.resource.index()] += t.volume_bytes * u.weight / net[u.resource].capacity.value();
    }
  }
  for (const double b : busy) bound = std::max(bound, b);
  for (const double l : load) bound = std::max(bound, l);
  return seconds(bound);
}

}  // namespace hetplan::tasks
