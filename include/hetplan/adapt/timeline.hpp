// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Timelines: events that change devices, network and targets while a job runs, and the conditions between events.

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/simulate/simulation.hpp>

namespace hetplan::adapt {

/// A resource changes its capacity from now on; 0 is an outage.
struct capacity_becomes {
  resource_id resource;
  bytes_per_second capacity;
  friend bool operator==(const capacity_becomes&, const capacity_becomes&) = default;
};
/// A device changes its speed factor from now on; at 0 it computes nothing, but answers.
struct speed_becomes {
  device_id device;
  double speed = 1;
  friend bool operator==(const speed_becomes&, const speed_becomes&) = default;
};
/// A device leaves without notice, with all that it holds. Its ports still forward the traffic of others.
struct device_leaves {
  device_id device;
  friend bool operator==(const device_leaves&, const device_leaves&) = default;
};
/// A device returns, with all that it held.
struct device_joins {
  device_id device;
  friend bool operator==(const device_joins&, const device_joins&) = default;
};
/// Foreign traffic begins.
struct transfer_begins {
  device_id from;
  device_id to;
  bytes volume;
  int priority = 0;
  friend bool operator==(const transfer_begins&, const transfer_begins&) = default;
};
/// The user's targets change; an empty target keeps its value.
struct qoe_becomes {
  std::optional<seconds> latency = {};
  std::optional<seconds> deadline = {};  ///< of the whole job, from the timeline's start
  friend bool operator==(const qoe_becomes&, const qoe_becomes&) = default;
};

using event_payload = std::variant<capacity_becomes, speed_becomes, device_leaves, device_joins, transfer_begins, qoe_becomes>;

struct event {
  seconds at;
  event_payload what;
  friend bool operator==(const event&, const event&) = default;
};

/// Events in time order; events of one instant apply in list order. At the start all devices are present at full speed.
/// Source  semantics, section 10.
struct timeline {
  seconds duration;
  std::vector<event> events = {};
  friend bool operator==(const timeline&, const timeline&) = default;
};

/// Thirty years: over longer times a double-precision clock does not resolve short iterations.
inline constexpr seconds longest_timeline(1e9);

/// A violated rule: the event, or none if the timeline itself is at fault, with the given and the expected value.
struct timeline_violation {
  std::optional<std::size_t> event;
  std::string what;
};

/// Returns the first rule that a timeline violates, or nothing. Faults: times that are not finite or out of order, unknown ids,
/// negative or non-finite amounts, transfers to the sender or without a route, devices that leave twice or join while present, the
/// departure of the last device, targets that are empty or not above zero. Events at or after the end are checked too.
[[nodiscard]] std::optional<timeline_violation> find_violation(const timeline& t, const cluster& c);

/// Throws invalid_input with the result of find_violation, and names the event.
void check_timeline(const timeline& t, const cluster& c);

/// The state of a cluster between two events, by device and by resource in the cluster's numbering.
struct conditions {
  std::vector<char> present;
  std::vector<double> speed;               ///< factor of each device's speed
  std::vector<bytes_per_second> capacity;  ///< by resource

  [[nodiscard]] bool works(device_id d) const { return present[d.index()] != 0 && speed[d.index()] > 0; }
  [[nodiscard]] std::vector<char> working() const;  ///< by device
  friend bool operator==(const conditions&, const conditions&) = default;
};

/// Returns the conditions in the description of a cluster.
[[nodiscard]] conditions nominal(const cluster& c);

/// Applies an event to conditions; traffic and targets change none.
void apply(conditions& now, const event& e);

/// Returns the largest change |new / old - 1| of a speed or capacity; 1 if a device came or went, infinite for a rise from 0.
/// Source  Dora, section 5: fluctuations within 10 % need no new partition.
[[nodiscard]] double change(const conditions& before, const conditions& now);

/// The ratio of adjacent rounded values, usual * rounding_step^k: the nearest is at most 10 % away.
inline constexpr double rounding_step = 1.21;
/// Returns the number of rounding steps of a ratio.
[[nodiscard]] inline double rounding_steps(double ratio) { return std::log(ratio) / std::log(rounding_step); }
[[nodiscard]] double rounded_value(double usual, long k);

/// Returns the representative of similar conditions: every speed and capacity at the nearest 1.21^k times nominal. Idempotent.
/// Source  ours; Dora, section 5, asks for no new partition within 10 %.
[[nodiscard]] conditions rounded(conditions now, const cluster& c);

/// Returns the simulator's options for constant conditions; nominal values need no entry.
/// Source  semantics, section 10.
[[nodiscard]] simulator_options from_the_start(const conditions& now, const cluster& c);

/// A measured bandwidth over time: the rate of each step holds until the next step.
/// Source  semantics, section 10: capacities are piecewise constant in time; the lengths of steps are ours.
struct bandwidth_trace {
  struct step {
    seconds at;
    bytes_per_second rate;
    friend bool operator==(const step&, const step&) = default;
  };
  std::vector<step> steps;

  friend bool operator==(const bandwidth_trace&, const bandwidth_trace&) = default;
};

/// The continuation of a trace after its last step.
enum class past_the_end {
  holds,   ///< the last rate continues
  repeats  ///< the whole trace repeats
};

/// The most events from one trace: milliseconds repeated over a day would fill the memory.
inline constexpr std::size_t max_trace_events = 2'000'000;

/// Throws invalid_input that names the step: no steps, times out of order, a negative or non-finite time or rate.
void check_trace(const bandwidth_trace& t);

/// Returns the duration of a step. The last step is as long as the one before it; a single step has no length.
[[nodiscard]] seconds length(const bandwidth_trace& t, std::size_t step);

/// Returns the time from the first step to the end of the last, which is averaged and repeated.
[[nodiscard]] seconds length(const bandwidth_trace& t);

/// Returns the time-weighted mean rate of a valid trace; for a single step its rate.
/// Complexity  O(steps).
[[nodiscard]] bytes_per_second mean(const bandwidth_trace& t);

/// Returns the trace with all rates multiplied by one factor, so that their mean is `target`.
/// Throws  invalid_input for an invalid trace (check_trace), a negative or non-finite target, a mean of 0 below it, infinite rates.
[[nodiscard]] bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target);

/// Returns the events of a trace on a resource before `duration`: one per step, also if the rate stays the same.
///
/// Times count from the timeline's start. Before the first step the resource keeps its capacity.
/// Throws      invalid_input for an invalid trace (check_trace) or more than max_trace_events. Ids are left to check_timeline.
/// Complexity  O(events).
[[nodiscard]] std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration,
                                           past_the_end then = past_the_end::holds);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/timeline.ipp>
#endif
