// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A schedule of operators -> a task graph, for tables that come from no model: their transfers have times, not bytes.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// What a simulator needs beside the graph: the table's devices, and a resource for each of its resources.
struct placement_tasks {
  task_graph graph;
  hetplan::cluster cluster;
};

/// Expands a schedule: a stage for each operator, in its order on its device; each transfer as a latency without bytes, through the
/// resources of its pair, released when the schedule starts it and earlier ones first. Under policy_of(r.contention) the simulator
/// gives the schedule's makespan again.
///
/// @param s     of this table under these rules (place::find_broken_rule finds nothing).
/// Complexity   O((operators + edges) log).
/// Source       Moirai, figure 8: every transfer is a node.
[[nodiscard]] placement_tasks expand(const place::placement_table& t, const place::placement_rules& r, const place::operator_schedule& s);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/expand_placement.ipp>
#endif
