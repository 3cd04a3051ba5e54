// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan's task graph as each device runs it: its tasks in order, their inputs and outputs, and its reductions.

#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/tasks/task_graph.hpp>

#include "medium.hpp"
#include "network.hpp"

namespace executors {

/// Bytes from one device to another: a transfer of the task graph.
struct planned_flow {
  hetplan::device_id from, to;
  double bytes = 0;
  double latency_s = 0;
  double release_s = 0;  ///< after the iteration's start
  int priority = 0;
  int after = -1;  ///< the flow of the previous chunk, which must arrive first; -1: none
};

/// Rows of tensors from one stage to another: outputs of `layers`, or the gradients of these outputs.
struct message {
  hetplan::stage_id from, to;
  bool backward = false;
  std::vector<std::size_t> layers;
  long first = 0, last = 0;        ///< samples of the global batch
  std::vector<std::size_t> flows;  ///< its chunks, in order
};

/// A compute task with the messages (indices) that it waits for and sends. A whole backward is two consecutive tasks: the input gradients
/// receive, and the weight gradients send.
struct task {
  hetplan::phase what;
  hetplan::stage_id stage;
  long first = 0, last = 0;
  std::vector<std::size_t> receives, sends;
};

struct ring_sum {
  hetplan::reduction what;
  std::vector<std::size_t> flows;  ///< [member]: to the next member
  std::vector<std::size_t> tensors;
};

/// A sum across stages, sent by the first device of a stage to its other devices.
///
/// Deviation from semantics, section 6, where they get it for free.
struct handout {
  std::size_t ring;
  std::size_t flow;
};

/// A copy of tensors held by one device only, sent to another after every iteration.
struct backup_copy {
  std::size_t flow;
  std::vector<std::size_t> tensors;
};

/// A stage's layers in topological order, its outside inputs, and its devices.
struct stage_part {
  std::vector<std::size_t> layers;
  std::vector<std::size_t> outside;  ///< layers of other stages that the stage reads
  std::vector<hetplan::device_id> devices;
  bool recompute = false;  ///< a backward repeats its forward, which keeps only what it reads
};

struct program {
  long batch = 0;
  std::vector<stage_part> stages;
  std::vector<std::size_t> stage_of;  ///< [layer]
  std::vector<planned_flow> flows;
  std::vector<flow_rule> rules;  ///< [flow]
  std::vector<message> messages;
  std::vector<std::vector<task>> tasks;  ///< [device], in order
  std::vector<ring_sum> rings;           ///< in the order in which all members take part
  std::vector<handout> handouts;
  std::vector<backup_copy> backups;          ///< with `--backups`
  std::vector<hetplan::resource> resources;  ///< of the network that shapes the links
  hetplan::sharing policy = hetplan::sharing::fair_share;

  [[nodiscard]] bool uses(hetplan::device_id d) const { return !tasks[d.index()].empty(); }
  /// Returns the number of things that flows hold alone: ports out of and into each device under exclusive, resources under per_link.
  [[nodiscard]] std::size_t slots() const;

  /// Adds a flow over the network that shapes the links. Throws invalid_input if it has no route.
  std::size_t add_flow(const hetplan::cluster& nominal, hetplan::device_id from, hetplan::device_id to, double bytes, int priority = 0);
};

/// Returns a program without tasks on the network of a cluster.
[[nodiscard]] program idle_program(const hetplan::cluster& nominal);

/// Throws invalid_input for plans that the executors cannot run.
void require_executable(const hetplan::plan& p, const hetplan::cluster& c);

/// Returns the program of a plan.
///
/// @param model    describe(net), with profiles.   @param c  the plan's cluster, devices and routes.
/// @param nominal  shapes the links: the same devices and resources, possibly other capacities and latencies.
/// @param graph    tasks::expand of these.
/// Throws          invalid_input (see require_executable; a cluster with other devices or resources).
[[nodiscard]] program make_program(const hetplan::plan& p, const neural_network& net, const hetplan::planning_graph& model,
                                   const hetplan::cluster& c, const hetplan::cluster& nominal, const hetplan::tasks::task_graph& graph);

}  // namespace executors
