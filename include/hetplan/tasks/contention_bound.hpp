// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A tighter bound for schedulers: every resource is a machine with release times and tails.

#include <vector>

#include <hetplan/tasks/critical_path.hpp>

namespace HETPLAN_NAMESPACE::tasks {

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
[[nodiscard]] double preemptive_machine_bound(std::vector<machine_job> jobs);

/// schedule_bound, and for every resource the bound of its transfers with the longest paths to and from them.
///
/// At least schedule_bound; no schedule of the plan's transfers beats it, whatever network policy shares the resources, at the network's
/// own capacities and device speeds of 1. Complexity  O(nodes + dependencies + uses log uses).
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net);

}  // namespace HETPLAN_NAMESPACE::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/contention_bound.ipp>
#endif
