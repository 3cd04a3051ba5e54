// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Task graphs from schedules of operators in placement tables, whose transfers have times instead of bytes.

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::tasks {

/// Input of a simulator: the task graph, and a cluster with the table's devices and resources.
struct placement_tasks {
  task_graph graph;
  hetplan::cluster cluster;
};

/// Returns the task graph of a schedule. Each operator is a stage, in its order on its device. Each transfer is a latency without bytes on
/// the resources of its pair, released at its start in the schedule, with earlier ones first. Under policy_of(r.contention) the simulator
/// reproduces the schedule's makespan.
///
/// @param s     valid for the table and the rules (place::find_broken_rule finds nothing).
/// Complexity   O((operators + edges) log).
/// Source       Moirai, figure 8: every transfer is a node.
[[nodiscard]] placement_tasks expand(const place::placement_table& t, const place::placement_rules& r, const place::operator_schedule& s);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/expand_placement.ipp>
#endif
