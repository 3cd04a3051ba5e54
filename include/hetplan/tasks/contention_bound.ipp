// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/contention_bound.hpp>

#include <algorithm>
#include <queue>
#include <utility>

namespace HETPLAN_NAMESPACE::tasks {

HETPLAN_INLINE double preemptive_machine_bound(std::vector<machine_job> jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const machine_job& a, const machine_job& b) { return a.head_s < b.head_s; });
  const auto less_urgent = [](const machine_job& a, const machine_job& b) { return a.tail_s < b.tail_s; };
  std::priority_queue<machine_job, std::vector<machine_job>, decltype(less_urgent)> ready(less_urgent);
  double now = 0, bound = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, jobs[next].head_s);
    while (next < jobs.size() && jobs[next].head_s <= now) ready.push(jobs[next++]);
    machine_job job = ready.top();
    ready.pop();
    const double end = now + job.work_s;
    if (next < jobs.size() && jobs[next].head_s < end) {  // the next arrival may be more urgent
      job.work_s = end - jobs[next].head_s;
      now = jobs[next].head_s;
      ready.push(job);
    } else {
      now = end;
      bound = std::max(bound, now + job.tail_s);
    }
  }
  return bound;
}

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
  for (auto& j : jobs) bound = std::max(bound, preemptive_machine_bound(std::move(j)));
  return seconds(bound);
}

HETPLAN_INLINE seconds contention_bound(const task_graph& g, const network& net) { return contention_bound(g, net, longest_paths(g, net)); }

}  // namespace HETPLAN_NAMESPACE::tasks
