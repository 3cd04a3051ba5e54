// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a simulation is told, by options and network policies, and what it says: events and the trace.

#include <cstdint>
#include <optional>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cluster/network_sharing.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan {

// The network policies that ship.

/// Max-min fairness with equal rates, as with uncontrolled TCP.
struct fair_share {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// Smaller priority numbers first; max-min fairness among equal ones.
struct by_priority {
  [[nodiscard]] int tier(const tasks::transfer& t) const { return t.priority; }
  [[nodiscard]] route_access access() const { return route_access::shared; }
};

/// One transfer out of and one into a device at a time, without pre-emption (Moirai, eq. 8). Transfers under way share resources max-min.
struct exclusive_ports {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_ports; }
};

/// One transfer on every resource at a time, without pre-emption.
struct exclusive_links {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::exclusive_links; }
};

/// No contention: every transfer runs at its route's peak rate, as in papers on placement.
struct unlimited {
  [[nodiscard]] int tier(const tasks::transfer&) const { return 0; }
  [[nodiscard]] route_access access() const { return route_access::unlimited; }
};

/// The policy that a plan or schedule names. The library itself simulates with this policy only, to compile one event loop.
struct policy_of_plan {
  sharing kind = sharing::fair_share;
  [[nodiscard]] int tier(const tasks::transfer& t) const { return kind == sharing::priority ? t.priority : 0; }
  [[nodiscard]] route_access access() const {
    switch (kind) {
      case sharing::exclusive: return route_access::exclusive_ports;
      case sharing::per_link: return route_access::exclusive_links;
      case sharing::unlimited: return route_access::unlimited;
      case sharing::fair_share:
      case sharing::priority: break;
    }
    return route_access::shared;
  }
};

static_assert(check_network_policy<fair_share>() && check_network_policy<by_priority>() && check_network_policy<exclusive_ports>() &&
              check_network_policy<exclusive_links>() && check_network_policy<unlimited>() && check_network_policy<policy_of_plan>());

// Trace of a simulated run: times of all tasks and transfers, busy time, memory and bytes.

/// Start and end [s]. A transfer starts when it may use its route, so its latency is inside.
struct interval {
  double start_s = 0;
  double end_s = 0;
  friend bool operator==(const interval&, const interval&) = default;
};

/// Transfer rate [B/s] from `at_s` on; 0 when the transfer ends or starves.
struct rate_change {
  double at_s = 0;
  std::uint32_t transfer = 0;
  double rate = 0;
  friend bool operator==(const rate_change&, const rate_change&) = default;
};

/// Memory that a device holds from `at_s` on.
struct memory_change {
  double at_s = 0;
  std::uint32_t device = 0;
  double held_bytes = 0;
  friend bool operator==(const memory_change&, const memory_change&) = default;
};

/// The trace of a run. Vectors without a note are parallel to the task graph's.
struct trace {
  hetplan::status status;                      ///< `stopped` by an observer or by `until`: the trace ends there
  route_access access = route_access::shared;  ///< how transfers accessed their routes
  seconds latency = {};                        ///< T, the last end; or the time of `until` if that stopped the run
  std::vector<interval> computes;
  std::vector<interval> transfers;
  std::vector<double> busy_s;           ///< by device
  std::vector<double> memory_bound_s;   ///< by device: part of busy_s in which memory is the limit, as its tasks tell
  std::vector<double> peak_bytes;       ///< by device: static memory and activations, as they occurred
  std::vector<double> sent_bytes;       ///< by device, payload
  std::vector<double> received_bytes;   ///< by device, payload
  std::vector<double> resource_bytes;   ///< by resource: payload * weight
  std::vector<double> background_left;  ///< by background transfer: bytes not moved when the run ends
  std::vector<rate_change> rates;       ///< only if recorded, in time order
  std::vector<memory_change> memory;    ///< only if recorded, in time order

  /// Returns 1 - busy / T of a device.
  [[nodiscard]] double bubble_ratio(std::size_t device) const { return latency.value() > 0 ? 1 - busy_s[device] / latency.value() : 0; }
  friend bool operator==(const trace&, const trace&) = default;
};

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
#include <hetplan/simulate/simulation.ipp>
#endif
