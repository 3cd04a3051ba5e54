// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/contention_bound.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

#include <hetplan/solve/preemptive_machine.hpp>

namespace hetplan::tasks {

HETPLAN_INLINE seconds contention_bound(const task_graph& g, const network& net, const path_times& paths) {
  std::vector<std::vector<machine_job>> jobs(net.resources().size());
  for (std::size_t i = 0; i < g.transfers.size(); ++i) {
    const transfer& t = g.transfers[i];
    const node_id n = g.node_of_transfer(i);
    for (const resource_use& u : g.routes[t.route].via) {
      const double work = work_s(t, u, net);
      if (work > 0) jobs[u.resource.index()].push_back({paths.earliest_start_s[n] + t.latency_s, work, paths.tail_s[n]});
    }
  }
  double bound = schedule_bound(g, net, paths).value();
  for (auto& j : jobs) bound = std::max(bound, preemptive_machine_bound(j));
  return seconds(bound);
}

HETPLAN_INLINE seconds contention_bound(const task_graph& g, const network& net) { return contention_bound(g, net, longest_paths(g, net)); }

}  // namespace hetplan::tasks
