// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Models, plans, clusters and task graphs for Graphviz (dot -Tsvg).

#include <string>

#include <hetplan/draw/dot_cluster.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE::draw {

/// A model: a node per layer with its kind, FLOP and weight, an edge per tensor with its bytes per sample.
/// Edges whose gradient does not return are dashed.
///
/// Complexity  O(layers log boxes + edges).
[[nodiscard]] std::string dot(const planning_graph& model, const dot_options& options = {});

/// A plan: its stages as boxes coloured by their (first) device, with their layers, or in a model beyond `max_plan_layers` as nodes
/// that name the first and last. So too where most of many operators are stages of their own, with their kinds. Edges carry the bytes of a
/// sample; those that leave a device are bold.
///
/// The plan must be valid for model and cluster.
[[nodiscard]] std::string dot(const plan& p, const planning_graph& model, const cluster& c, const dot_options& options = {});

/// A task graph: a box per device with its tasks in their order (dotted), transfers between, barriers as points.
/// For graphs that one can look at: every task is a node. Without a cluster, devices are numbered.
[[nodiscard]] std::string dot(const tasks::task_graph& g, const dot_options& options = {.direction = dot_direction::right});
[[nodiscard]] std::string dot(const tasks::task_graph& g, const cluster& c,
                              const dot_options& options = {.direction = dot_direction::right});

}  // namespace HETPLAN_NAMESPACE::draw

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/dot.ipp>
#endif
