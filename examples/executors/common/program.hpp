// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan's task graph as each device runs it: its tasks in order, what they wait for, what they send, and its reductions.

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
  double release_s = 0;  ///< from the iteration's start
  int priority = 0;
  int after = -1;  ///< the flow that has to arrive before this one starts: the chunk before it
};

/// Rows of tensors from a stage to another: outputs of `layers`, or the gradients of those outputs on their way back.
struct message {
  hetplan::stage_id from, to;
  bool backward = false;
  std::vector<std::size_t> layers;
  long first = 0, last = 0;        ///< samples of the global batch
  std::vector<std::size_t> flows;  ///< its chunks, in order
};

/// A compute task, and the messages (indices) that it waits for and that leave when it is done. A whole backward is two, one behind the
/// other: the gradients of the inputs wait, and those of the weights send.
struct task {
  hetplan::phase what;
  hetplan::stage_id stage;
  long first = 0, last = 0;
  std::vector<std::size_t> receives, sends;
};

/// A sum of gradients around a ring.
struct ring_sum {
  hetplan::reduction what;
  std::vector<std::size_t> flows;  ///< by member: to the next one
  std::vector<std::size_t> tensors;
};

/// What a first device passes on after a sum across stages: the other devices of its stage need it too.
///
/// Deviation from semantics, section 6, which lets them have it for free.
struct handout {
  std::size_t ring;
  std::size_t flow;
};

/// A copy of what only one device holds, kept by another after every iteration.
struct backup_copy {
  std::size_t flow;
  std::vector<std::size_t> tensors;
};

/// Layers of a stage in topological order, what it reads from elsewhere, and its devices.
struct stage_part {
  std::vector<std::size_t> layers;
  std::vector<std::size_t> outside;  ///< layers of other stages that it reads
  std::vector<hetplan::device_id> devices;
};

struct program {
  long batch = 0;
  std::vector<stage_part> stages;
  std::vector<std::size_t> stage_of;  ///< by layer
  std::vector<planned_flow> flows;
  std::vector<flow_rule> rules;  ///< by flow
  std::vector<message> messages;
  std::vector<std::vector<task>> tasks;  ///< by device, in order
  std::vector<ring_sum> rings;           ///< in the order in which every member takes part in them
  std::vector<handout> handouts;
  std::vector<backup_copy> backups;          ///< none unless they are asked for: add_backups
  std::vector<hetplan::resource> resources;  ///< of the network that shapes the links

  [[nodiscard]] bool uses(hetplan::device_id d) const { return !tasks[d.index()].empty(); }

  /// A flow over the network that shapes the links. Throws invalid_input where it has no route.
  std::size_t add_flow(const hetplan::cluster& nominal, hetplan::device_id from, hetplan::device_id to, double bytes, int priority = 0);
};

/// A program in which nobody has anything to do yet, on the network of a cluster.
[[nodiscard]] program idle_program(const hetplan::cluster& nominal);

/// Throws invalid_input that says which plans the executors do not run.
void require_executable(const hetplan::plan& p, const hetplan::cluster& c);

/// The program of a plan.
///
/// @param model    describe(net), with profiles.   @param c  the cluster that the plan speaks of, devices and routes.
/// @param nominal  shapes the links: the same devices and resources, other capacities and latencies perhaps.
/// @param graph    tasks::expand of them.
/// Throws          invalid_input (see require_executable; a cluster with other devices or resources).
[[nodiscard]] program make_program(const hetplan::plan& p, const neural_network& net, const hetplan::planning_graph& model,
                                   const hetplan::cluster& c, const hetplan::cluster& nominal, const hetplan::tasks::task_graph& graph);

}  // namespace executors
