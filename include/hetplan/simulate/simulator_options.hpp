// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a simulation is told besides its task graph, and what it tells its observers.

#include <optional>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

/// Events for observers: a compute task or a transfer has ended.
struct task_ended {
  const tasks::compute_task& task;
  interval when;
};
struct transfer_ended {
  const tasks::transfer& transfer;
  interval when;
};

/// From `at` on, a resource has another capacity or a device another speed (1 = as its cost model says).
struct capacity_change {
  seconds at;
  resource_id resource;
  bytes_per_second capacity;
};
struct speed_change {
  seconds at;
  device_id device;
  double speed;
};

/// Traffic that belongs to no plan, such as weights on their way: it shares the network with the transfers of the graph, by its
/// priority where the policy asks, and the run does not wait for it.
struct background_transfer {
  device_id from;
  device_id to;
  bytes volume;
  seconds release = {};  ///< when its first byte may move: latency is the caller's business
  int priority = 0;
};

/// Says what a free device does next in a run of a graph whose devices have no orders. The run asks after everything that happens within
/// 1e-9 of an instant.
class work_source {
 public:
  virtual ~work_source() = default;
  /// All that this task waits for is there.
  virtual void ready(tasks::node_id task) = 0;
  /// The task that the device starts now; nothing: it waits.
  [[nodiscard]] virtual std::optional<tasks::node_id> next(std::size_t device, double now_s, double held_bytes) = 0;
  /// Nothing will ever happen again, and tasks are left. Throws invalid_input, saying why.
  [[noreturn]] virtual void stuck() const = 0;
};

struct simulator_options {
  bool record = false;                               ///< keep rate and memory changes in the trace (for charts)
  std::optional<seconds> until = {};                 ///< stop then, finished or not
  std::vector<background_transfer> background = {};  ///< not under `prescribed`; takes no ports
  std::vector<capacity_change> capacities = {};
  std::vector<speed_change> speeds = {};
  work_source* source = nullptr;  ///< in place of the graph's orders (see dispatch); the run does not own it
};

namespace detail {

/// Throws invalid_input where capacities change and transfers are part of tasks: their time was fixed when they were expanded.
void check_blocking(const tasks::task_graph& g, const simulator_options& o);

/// Throws invalid_input where capacities change under a network sharing that cannot be told.
void check_follows(bool follows_capacities, const simulator_options& o);

/// Throws invalid_input for a change that names nothing or is no number.
void check_options(const simulator_options& o, const network& net, std::size_t devices);

}  // namespace detail

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/simulator_options.ipp>
#endif
