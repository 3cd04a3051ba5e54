// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The waist: one form of work between planners above and judges below.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::tasks {

/// A node of the task graph: compute tasks first, then transfers, then barriers.
using node_id = std::uint32_t;

/// A piece of computing: stage, phase, device and the samples [first, last) of the global batch.
struct compute_task {
  hetplan::phase what = phase::forward;  ///< backward_input stands for the whole backward unless it is split
  stage_id stage = {};
  device_id device = {};
  int microbatch = 0;
  int token = 0;  ///< generation: token index
  int unit = 0;   ///< of a stage that shares out gradients or weights: a pass is a task for each
  long long first_sample = 0;
  long long last_sample = 0;
  double duration_s = 0;
  double again_s = 0;         ///< of that, its stage's forward, run again before a backward
  double takes_bytes = 0;     ///< of activations, when it starts
  double releases_bytes = 0;  ///< of activations, when it ends
};

/// No task.
inline constexpr node_id no_carrier = ~node_id{0};

/// Bytes on their way. A transfer without predecessors is background traffic or migration.
struct transfer {
  transfer_kind kind = transfer_kind::forward;
  device_id from = {};
  device_id to = {};
  stage_id from_stage = {};
  stage_id to_stage = {};
  int microbatch = 0;  ///< the producer's
  int token = 0;
  int unit = 0;  ///< of a gather or scatter
  int chunk = 0;
  int priority = 0;
  std::uint32_t route = 0;     ///< index into task_graph::routes
  long long first_sample = 0;  ///< of the global batch, up to last_sample; none in a reduction
  long long last_sample = 0;
  double volume_bytes = 0;
  double latency_s = 0;          ///< 0 for all chunks but the first
  double release_s = 0;          ///< never starts earlier
  node_id carrier = no_carrier;  ///< the compute task of `from` that it starts and ends with; none: it runs beside the work

  /// Is it part of its devices' work (transfer_mode::block)? Then it takes nothing of the network's time.
  [[nodiscard]] bool blocks() const { return carrier != no_carrier; }
};

/// Compute tasks and transfers with their dependencies, and a fixed order of tasks per device.
///
/// Self-contained but for the capacities of the resources. Successors are compressed sparse rows over
/// all nodes; a barrier takes no time and only joins dependencies. Made by `expand` or, for other kinds
/// of work, by `task_graph_builder`.
struct task_graph {
  std::vector<compute_task> computes;
  std::vector<transfer> transfers;
  std::size_t barriers = 0;
  std::vector<route> routes;
  std::vector<std::vector<node_id>> device_order;  ///< by device: compute tasks in their fixed order
  std::vector<double> static_bytes;                ///< by device: held for the whole run
  std::vector<char> used;                          ///< by device: does the plan use it
  std::vector<std::uint32_t> first_successor;      ///< nodes + 1 entries
  std::vector<node_id> successors;
  std::vector<std::uint32_t> predecessors;  ///< how many a node waits for

  [[nodiscard]] std::size_t size() const { return computes.size() + transfers.size() + barriers; }
  /// What all transfers move: the communication volume of an iteration.
  ///
  /// Source  Asteroid, section 2.3, eqs. 1 and 2, where they count one pipeline's or a parameter server's traffic.
  [[nodiscard]] bytes volume() const;
  [[nodiscard]] bool is_compute(node_id n) const { return n < computes.size(); }
  [[nodiscard]] bool is_transfer(node_id n) const { return n >= computes.size() && n < computes.size() + transfers.size(); }
  [[nodiscard]] const transfer& transfer_at(node_id n) const { return transfers[n - computes.size()]; }
  [[nodiscard]] node_id node_of_transfer(std::size_t t) const { return static_cast<node_id>(computes.size() + t); }
  [[nodiscard]] std::span<const node_id> successors_of(node_id n) const;
};

/// Collects tasks, transfers and dependencies in any order of kinds, then numbers the nodes.
class task_graph_builder {
 public:
  /// A handle until build() numbers the nodes.
  struct handle {
    enum class kind : std::uint8_t { compute, transfer, barrier } of = kind::barrier;
    std::uint32_t index = 0;
  };

  explicit task_graph_builder(std::size_t devices);

  handle add(const compute_task& t);
  handle add(const transfer& t);
  handle add_barrier() { return {handle::kind::barrier, static_cast<std::uint32_t>(graph_.barriers++)}; }

  /// Makes a compute task longer.
  void prolong(handle task, double by_s) { graph_.computes[task.index].duration_s += by_s; }
  void depend(handle before, handle after) { edges_.emplace_back(before, after); }
  /// Appends a compute task to its device's order.
  void append_to_order(handle task) { graph_.device_order[graph_.computes[task.index].device.index()].push_back(task.index); }
  std::uint32_t add_route(route r);
  [[nodiscard]] const compute_task& operator[](handle h) const { return graph_.computes[h.index]; }
  [[nodiscard]] const route& route_at(std::uint32_t r) const { return graph_.routes[r]; }
  /// Counts a device as used though it has no task (a parameter server).
  void use(device_id d) { graph_.used[d.index()] = 1; }
  void hold(device_id d, double bytes) { graph_.static_bytes[d.index()] += bytes; }
  void reserve(std::size_t computes, std::size_t transfers, std::size_t edges);

  /// Numbers the nodes and indexes the successors. Complexity O(nodes + edges).
  [[nodiscard]] task_graph build() &&;

 private:
  [[nodiscard]] node_id node(handle h) const;

  task_graph graph_;
  std::vector<std::pair<handle, handle>> edges_;
};

// No schedule of this plan is faster: its critical path, its busiest device and its busiest resource.

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/task_graph.ipp>
#endif
