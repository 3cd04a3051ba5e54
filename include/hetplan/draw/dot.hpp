// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Models, plans, clusters and task graphs for Graphviz (dot -Tsvg).

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

/// How layers of a model are boxed together.
enum class dot_boxes {
  none,
  towers,         ///< by name up to the first '.': "vision.block0.q" and "vision.embed" are in "vision"
  weight_groups,  ///< layers that share a tensor
};

enum class dot_direction { down, right };

struct dot_options {
  dot_boxes boxes = dot_boxes::towers;
  dot_direction direction = dot_direction::down;
  std::size_t max_plan_layers = 80;  ///< a plan of a larger model shows stages, not layers
};

/// A cluster: devices with compute and memory; a resource that joins one pair alone is an edge with its
/// capacity, every other one (a shared medium, an uplink) a node that routes pass through.
///
/// Complexity  O(devices^2 * route length * log).
[[nodiscard]] std::string dot(const cluster& c, const dot_options& options = {});

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

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/dot.ipp>
#endif
