// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Options of a simulation, and the events that its observers receive.

#include <optional>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Observer event: a compute task has ended.
struct task_ended {
  const tasks::compute_task& task;
  interval when;
};
/// Observer event: a transfer has ended.
struct transfer_ended {
  const tasks::transfer& transfer;
  interval when;
};

/// New capacity of a resource from `at` on.
struct capacity_change {
  seconds at;
  resource_id resource;
  bytes_per_second capacity;
};
/// New speed of a device from `at` on; 1 is the speed of its cost model.
struct speed_change {
  seconds at;
  device_id device;
  double speed;
};

/// Traffic outside the plan, such as migrating weights. It shares the network with the graph's transfers, by its priority if the policy
/// has priorities, and the run does not wait for it.
struct background_transfer {
  device_id from;
  device_id to;
  bytes volume;
  seconds release = {};  ///< when its first byte may move; the caller accounts for latency
  int priority = 0;
};

/// Source of a free device's next task, for graphs without device orders. The run asks after everything within 1e-9 of an instant.
class work_source {
 public:
  virtual ~work_source() = default;
  /// Called when all inputs of a task have arrived.
  virtual void ready(tasks::node_id task) = 0;
  /// Returns the task that a device starts now; nothing if it waits.
  [[nodiscard]] virtual std::optional<tasks::node_id> next(std::size_t device, double now_s, double held_bytes) = 0;
  /// Called if tasks are left but no event is. Throws invalid_input with the reason.
  [[noreturn]] virtual void stuck() const = 0;
};

struct simulator_options {
  bool record = false;                               ///< keeps changes of rates and memory in the trace, for charts
  std::optional<seconds> until = {};                 ///< the time at which the run stops, finished or not
  std::vector<background_transfer> background = {};  ///< not under `prescribed`; takes no ports
  std::vector<capacity_change> capacities = {};
  std::vector<speed_change> speeds = {};
  work_source* source = nullptr;  ///< replaces the graph's orders (see dispatch); not owned
};

namespace detail {

/// Throws invalid_input if capacities change and transfers block: their time became part of tasks when the plan was expanded.
void check_blocking(const tasks::task_graph& g, const simulator_options& o);

/// Throws invalid_input if capacities change under a network sharing without set_capacity.
void check_follows(bool follows_capacities, const simulator_options& o);

/// Throws invalid_input for a change with an unknown id or an invalid number.
void check_options(const simulator_options& o, const network& net, std::size_t devices);

}  // namespace detail

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/simulator_options.ipp>
#endif
