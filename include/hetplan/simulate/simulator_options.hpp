// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a simulation is told besides its task graph, and what it tells its observers.

#include <vector>

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

struct simulator_options {
  bool record = false;  ///< keep rate and memory changes in the trace (for charts)
  std::vector<capacity_change> capacities = {};
  std::vector<speed_change> speeds = {};
};

}  // namespace hetplan
