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

// The text of a Graphviz graph, piece by piece.

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

namespace detail {

/// Builds the text of one graph; nodes are numbered, names only appear in labels.
class dot_writer {
 public:
  dot_writer(std::string_view keyword, std::string_view title, dot_direction direction);

  /// `more` is written as it is: attributes, each after ", ".
  void node(const std::string& id, std::string_view label, std::string_view more = {});
  void edge(const std::string& from, const std::string& to, std::string_view label = {}, std::string_view more = {});
  void open_box(std::size_t number, std::string_view label, std::string_view fill = "#ffffff");
  void close_box();
  [[nodiscard]] std::string document() && { return std::move(out_) + "}\n"; }

  [[nodiscard]] static std::string id(char kind, std::size_t i) { return kind + std::to_string(i); }
  [[nodiscard]] static std::string fill(color c);

 private:
  std::string out_, indent_ = "  ", connector_;
};

}  // namespace detail

// A cluster for Graphviz: devices, and how resources lie between them.

namespace detail {

/// Finds out what is a wire (a resource that alone joins exactly one pair) and what is shared.
class cluster_picture {
 public:
  explicit cluster_picture(const cluster& c);

  [[nodiscard]] std::string draw(const dot_options& options);

 private:
  struct wire {
    device_id from, to;
    bool both_ways = false, is_wire = false;
  };

  static std::string device_node(device_id d) { return dot_writer::id('d', d.index()); }
  static std::string resource_node(std::size_t r) { return dot_writer::id('r', r); }

  template <class F>
  void for_each_route(F&& f) const {
    for (const device& a : cluster_.devices()) {
      for (const device& b : cluster_.devices()) {
        if (a.id == b.id) continue;
        if (const route* r = cluster_.network().find(a.id, b.id)) f(a.id, b.id, *r);
      }
    }
  }

  /// The chain of a route; routes over wires show themselves.
  void connect(device_id a, device_id b, const route& r);

  /// Where (almost) every one of three or more resources leads to every other, a switch is what is meant.
  void join_through_switch(dot_writer& out);

  const cluster& cluster_;
  std::vector<wire> wires_;  ///< by resource
  std::set<std::size_t> used_;
  std::set<std::pair<std::string, std::string>> links_;
};

}  // namespace detail

/// A cluster: devices with compute and memory; a resource that joins one pair alone is an edge with its
/// capacity, every other one (a shared medium, an uplink) a node that routes pass through.
///
/// Complexity  O(devices^2 * route length * log).
[[nodiscard]] inline std::string dot(const cluster& c, const dot_options& options = {}) { return detail::cluster_picture(c).draw(options); }

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

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/dot.ipp>
#endif
