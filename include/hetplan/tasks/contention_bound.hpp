// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A tighter bound for schedulers: every resource is a machine with release times and tails.

#include <hetplan/tasks/critical_path.hpp>

namespace hetplan::tasks {

/// schedule_bound, and for every resource the bound of its transfers with the longest paths to and from them.
///
/// At least schedule_bound; no schedule of the plan's transfers beats it, whatever network policy shares the resources, at the network's
/// own capacities and device speeds of 1. Complexity  O(nodes + dependencies + uses log uses).
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net);

}  // namespace hetplan::tasks

#ifndef HETPLAN_COMPILED
#include <hetplan/tasks/contention_bound.ipp>
#endif
