// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A tighter bound for schedulers: every resource is a machine with release times and tails.

#include <algorithm>
#include <queue>
#include <utility>
#include <vector>

#include <hetplan/tasks/critical_path.hpp>

namespace hetplan::tasks {

/// A job of a machine: not before `head_s`, `work_s` on the machine, and `tail_s` that follow elsewhere.
struct machine_job {
  double head_s = 0;
  double work_s = 0;
  double tail_s = 0;
};

/// The least possible max(end + tail) of jobs that share a machine in any way, split and side by side.
///
/// Largest tail first, with pre-emption, is optimal for it, and sharing side by side helps nothing: the value is that of
/// some set of jobs, least head + all work + least tail, which no sharing can beat.
/// Complexity  O(n log n).  Source  Jackson's preemptive schedule; Carlier 1982.
[[nodiscard]] inline double preemptive_machine_bound(std::vector<machine_job> jobs) {
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

/// schedule_bound, and for every resource the bound of its transfers with the longest paths to and from them.
///
/// At least schedule_bound; no schedule of the plan's transfers beats it, whatever network policy shares the resources, at the network's
/// own capacities and device speeds of 1. Complexity  O(nodes + dependencies + uses log uses).
[[nodiscard]] inline seconds contention_bound(const task_graph& g, const network& net, const path_times& paths) {
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
[[nodiscard]] inline seconds contention_bound(const task_graph& g, const network& net) {
  return contention_bound(g, net, longest_paths(g, net));
}

}  // namespace hetplan::tasks
