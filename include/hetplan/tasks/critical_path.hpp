// SPDX-License-Identifier: BSL-1.0
#pragma once
/// No schedule of this plan is faster: its critical path, its busiest device and its busiest resource.

#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// What a transfer takes of one resource on its route, all of it to itself [s].
[[nodiscard]] double work_s(const transfer& t, const resource_use& u, const network& net);

/// Longest paths through a task graph if every transfer had its route to itself. Vectors by node, in seconds; nodes
/// behind a cycle (validated plans have none) end at infinity.
struct path_times {
  std::vector<node_id> order;            ///< every node after those it waits for, the task before it on its device included
  std::vector<double> alone_s;           ///< what the node takes by itself; a transfer at its peak rate, latency included, 0 if it blocks
  std::vector<double> earliest_start_s;  ///< not before its release, where releases count
  std::vector<double> earliest_end_s;
  std::vector<double> tail_s;  ///< from the node's end to the end of everything, at least
};

namespace detail {

/// The task that follows each compute task on its device; g.size() if none.
[[nodiscard]] std::vector<node_id> next_on_device(const task_graph& g);

}  // namespace detail

/// Earliest starts and ends and longest tails of all nodes.
///
/// @param released  whether releases of transfers count: not for bounds on every schedule, which may release them at any time.
/// Complexity   O(nodes + dependencies).
/// Source       semantics, section 9 (c).
[[nodiscard]] path_times longest_paths(const task_graph& g, const network& net, bool released = true);

/// max(critical path, busiest device): a lower bound on the latency of this plan, though transfers were in nobody's way.
[[nodiscard]] seconds uncontended_bound(const task_graph& g, const path_times& paths);

/// max(critical path, busiest device, busiest resource): a lower bound on the latency of this plan, where transfers share the
/// network.
[[nodiscard]] seconds schedule_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds schedule_bound(const task_graph& g, const network& net);

// A tighter bound for schedulers: every resource is a machine with release times and tails.

/// schedule_bound, and for every resource the bound of its transfers with the longest paths to and from them.
///
/// At least schedule_bound; no schedule of the plan's transfers beats it, whatever network policy shares the resources, at the network's
/// own capacities and device speeds of 1. Complexity  O(nodes + dependencies + uses log uses).
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net);

}  // namespace hetplan::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/critical_path.ipp>
#endif
