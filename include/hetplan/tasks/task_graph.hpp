// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Task graph: the one form of work between planners and judges, and lower bounds on its latency.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::tasks {

/// Index of a node of the task graph: compute tasks first, then transfers, then barriers.
using node_id = std::uint32_t;

/// A computation of a stage's phase on a device, for the samples [first_sample, last_sample) of the global batch.
struct compute_task {
  hetplan::phase what = phase::forward;  ///< backward_input stands for the whole backward unless the backward is split
  stage_id stage = {};
  device_id device = {};
  int microbatch = 0;
  int pass = 0;              ///< generation: pass of the run (token_passes): chunks of the prompt, then steps
  bool makes_token = false;  ///< generation: of a stage that no other one follows, in a pass that makes a token
  int unit = 0;              ///< unit of a stage with sharded gradients or weights, which has one task per unit in each pass
  long long first_sample = 0;
  long long last_sample = 0;
  double duration_s = 0;
  double again_s = 0;         ///< part of the duration: recomputed forward before a backward
  double memory_bound_s = 0;  ///< part of the duration: memory is the limit (stage_costs::part::memory_bound)
  double takes_bytes = 0;     ///< activations allocated at the start
  double releases_bytes = 0;  ///< activations freed at the end
};

/// Value of transfer::carrier for a transfer beside the work.
inline constexpr node_id no_carrier = ~node_id{0};

/// A transfer of bytes between devices. Without predecessors it is background traffic or migration.
struct transfer {
  transfer_kind kind = transfer_kind::forward;
  device_id from = {};
  device_id to = {};
  stage_id from_stage = {};
  stage_id to_stage = {};
  int microbatch = 0;   ///< producer's microbatch
  int pass = 0;         ///< generation: the producer's pass of the run
  int to_position = 0;  ///< of the receiver among the devices of its stage
  int unit = 0;         ///< unit of a gather or scatter
  int chunk = 0;
  int priority = 0;
  std::uint32_t route = 0;     ///< index into task_graph::routes
  long long first_sample = 0;  ///< range [first_sample, last_sample) of the global batch; empty in a reduction
  long long last_sample = 0;
  double volume_bytes = 0;
  double latency_s = 0;          ///< 0 for all chunks but the first
  double release_s = 0;          ///< earliest start
  node_id carrier = no_carrier;  ///< compute task of `from` with which the transfer starts and ends; none: it runs beside the work

  /// Returns true if the transfer is part of its devices' work (transfer_mode::block) and takes no time of the network.
  [[nodiscard]] bool blocks() const { return carrier != no_carrier; }
};

/// Compute tasks and transfers with their dependencies, and a fixed order of the tasks on each device.
///
/// Self-contained except for the capacities of resources. Successors are compressed sparse rows over all nodes; a barrier takes no time and
/// only joins dependencies. Built by `expand` or, for other kinds of work, by `task_graph_builder`.
struct task_graph {
  std::vector<compute_task> computes;
  std::vector<transfer> transfers;
  std::size_t barriers = 0;
  std::vector<route> routes;
  std::vector<std::vector<node_id>> device_order;  ///< by device: compute tasks in execution order
  std::vector<double> static_bytes;                ///< by device: memory held for the whole run
  std::vector<char> used;                          ///< by device: nonzero if the plan uses it
  std::vector<std::uint32_t> first_successor;      ///< number of nodes + 1 entries
  std::vector<node_id> successors;
  std::vector<std::uint32_t> predecessors;  ///< by node: number of predecessors

  [[nodiscard]] std::size_t size() const { return computes.size() + transfers.size() + barriers; }
  /// Returns the bytes of all transfers, the communication volume of an iteration.
  /// Source  Asteroid, section 2.3, eqs. 1 and 2, for the traffic of one pipeline and of a parameter server.
  [[nodiscard]] bytes volume() const;
  [[nodiscard]] bool is_compute(node_id n) const { return n < computes.size(); }
  [[nodiscard]] bool is_transfer(node_id n) const { return n >= computes.size() && n < computes.size() + transfers.size(); }
  [[nodiscard]] const transfer& transfer_at(node_id n) const { return transfers[n - computes.size()]; }
  [[nodiscard]] node_id node_of_transfer(std::size_t t) const { return static_cast<node_id>(computes.size() + t); }
  [[nodiscard]] std::span<const node_id> successors_of(node_id n) const;
};

/// Builder of a task graph: collects tasks, transfers and dependencies in any order of kinds, then numbers the nodes.
class task_graph_builder {
 public:
  /// Reference to a node until build() numbers the nodes.
  struct handle {
    enum class kind : std::uint8_t { compute, transfer, barrier } of = kind::barrier;
    std::uint32_t index = 0;
  };

  explicit task_graph_builder(std::size_t devices);

  handle add(const compute_task& t);
  handle add(const transfer& t);
  handle add_barrier() { return {handle::kind::barrier, static_cast<std::uint32_t>(graph_.barriers++)}; }

  void prolong(handle task, double by_s) { graph_.computes[task.index].duration_s += by_s; }
  void depend(handle before, handle after) { edges_.emplace_back(before, after); }
  void append_to_order(handle task) { graph_.device_order[graph_.computes[task.index].device.index()].push_back(task.index); }
  std::uint32_t add_route(route r);
  [[nodiscard]] const compute_task& operator[](handle h) const { return graph_.computes[h.index]; }
  [[nodiscard]] const route& route_at(std::uint32_t r) const { return graph_.routes[r]; }
  /// Marks a device without tasks (a parameter server) as used.
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

/// Returns the seconds that a transfer occupies a resource of its route at full capacity; 0 if it blocks.
[[nodiscard]] double work_s(const transfer& t, const resource_use& u, const network& net);

/// Longest paths through a task graph without contention between transfers. Vectors by node, in seconds; nodes behind a cycle, which
/// validated plans do not have, end at infinity.
struct path_times {
  std::vector<node_id> order;            ///< topological order, also with respect to the task order of each device
  std::vector<double> alone_s;           ///< duration; of a transfer: at peak rate with latency, 0 if it blocks
  std::vector<double> earliest_start_s;  ///< at least the release, if releases count
  std::vector<double> earliest_end_s;
  std::vector<double> tail_s;  ///< lower bound on the time from the node's end to the end of the graph
};

namespace detail {

/// Returns, for each compute task, the next one on its device; g.size() if none.
[[nodiscard]] std::vector<node_id> next_on_device(const task_graph& g);

}  // namespace detail

/// Returns earliest starts and ends and longest tails of all nodes.
///
/// @param released  true if releases of transfers count. Bounds on every schedule ignore them, as a schedule may choose releases.
/// Complexity   O(nodes + dependencies).
/// Source       semantics, section 9 (c).
[[nodiscard]] path_times longest_paths(const task_graph& g, const network& net, bool released = true);

/// Returns max(critical path, busiest device), a lower bound on the plan's latency even without contention.
[[nodiscard]] seconds uncontended_bound(const task_graph& g, const path_times& paths);

/// Returns max(critical path, busiest device, busiest resource), a lower bound on the plan's latency on a shared network.
[[nodiscard]] seconds schedule_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds schedule_bound(const task_graph& g, const network& net);

/// Returns the maximum of schedule_bound and, for every resource, the one-machine bound of its transfers, with the longest paths to and
/// from them as release times and tails. No schedule of the plan's transfers beats it under any network policy, at the network's own
/// capacities and device speeds of 1. Complexity: O(nodes + dependencies + uses log uses).
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net, const path_times& paths);
[[nodiscard]] seconds contention_bound(const task_graph& g, const network& net);

}  // namespace hetplan::tasks

#ifndef HETPLAN_SEPARATE
#include <hetplan/tasks/task_graph.ipp>
#endif
