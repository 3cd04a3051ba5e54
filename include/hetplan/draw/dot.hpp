// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Models, plans, clusters and task graphs in Graphviz's DOT language (dot -Tsvg).

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::draw {

enum class dot_boxes {
  none,
  towers,         ///< by name up to the first '.': "vision.block0.q" and "vision.embed" are in "vision"
  weight_groups,  ///< layers that share a tensor
};

enum class dot_direction { down, right };

struct dot_options {
  dot_boxes boxes = dot_boxes::towers;
  dot_direction direction = dot_direction::down;
  std::size_t max_plan_layers = 80;  ///< plans of larger models show stages instead of layers
};

/// Returns a cluster with its devices' compute and memory. A resource that joins a single pair of devices is an edge with its capacity.
/// Any other resource (a shared medium, an uplink) is a node on the paths of its routes.
///
/// Complexity  O(devices^2 * route length * log).
[[nodiscard]] std::string dot(const cluster& c, const dot_options& options = {});

/// Returns a model: a node per layer with its kind, FLOP and weight, an edge per tensor with its bytes per sample. Dashed: no gradient.
///
/// Complexity  O(layers log boxes + edges).
[[nodiscard]] std::string dot(const planning_graph& model, const dot_options& options = {});

/// Returns a valid plan: stages as boxes of layers, in the colour of their first device. Models with more than `max_plan_layers` layers,
/// and plans with a stage for most of many operators, have stages as nodes instead. Edges carry the bytes of a sample, bold between
/// devices.
[[nodiscard]] std::string dot(const plan& p, const planning_graph& model, const cluster& c, const dot_options& options = {});

/// Returns a task graph: a box per device with its tasks, dotted edges in their order, transfers, and barriers as points. Every task is a
/// node, so the graph must be small. Without a cluster, devices are numbered.
[[nodiscard]] std::string dot(const tasks::task_graph& g, const dot_options& options = {.direction = dot_direction::right});
[[nodiscard]] std::string dot(const tasks::task_graph& g, const cluster& c,
                              const dot_options& options = {.direction = dot_direction::right});

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/dot.ipp>
#endif
