// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what changes while a job runs: what happens to devices, network and targets.

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/simulate/simulator_options.hpp>

namespace hetplan::adapt {

/// From now on a resource has another capacity; 0 is an outage.
struct capacity_becomes {
  resource_id resource;
  bytes_per_second capacity;
  friend bool operator==(const capacity_becomes&, const capacity_becomes&) = default;
};
/// From now on a device works at a factor of its speed; 0: it stands still, but answers.
struct speed_becomes {
  device_id device;
  double speed = 1;
  friend bool operator==(const speed_becomes&, const speed_becomes&) = default;
};
/// A device is gone, without a word; what it holds goes with it. Its ports still forward what others send.
struct device_leaves {
  device_id device;
  friend bool operator==(const device_leaves&, const device_leaves&) = default;
};
/// It is back, with what it held.
struct device_joins {
  device_id device;
  friend bool operator==(const device_joins&, const device_joins&) = default;
};
/// Somebody else's traffic begins.
struct transfer_begins {
  device_id from;
  device_id to;
  bytes volume;
  int priority = 0;
  friend bool operator==(const transfer_begins&, const transfer_begins&) = default;
};
/// The user wants something else.
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

/// Events in time order, those of one instant in list order; all devices are there at the start, at full speed.
///
/// Source  semantics, section 10.
struct timeline {
  seconds duration;
  std::vector<event> events = {};
  friend bool operator==(const timeline&, const timeline&) = default;
};

/// Thirty years. Beyond, a second holds so few of a clock's last digits that short iterations would not move it.
inline constexpr seconds longest_timeline(1e9);

/// A broken rule: the event that breaks it, none where the timeline itself does, and what was given and expected.
struct timeline_violation {
  std::optional<std::size_t> event;
  std::string what;
};

/// The first rule that a timeline breaks, or nothing: a time before the one before it or not finite, an unknown id, a negative
/// or non-finite amount, a transfer without a route or to itself, a device that leaves twice or joins while it is there, the
/// last device leaving, a target that says nothing or is not above zero.
/// Events at or after the end never happen, but are checked all the same.
[[nodiscard]] std::optional<timeline_violation> find_violation(const timeline& t, const cluster& c);

/// Throws invalid_input with what find_violation finds, and names the event.
void check_timeline(const timeline& t, const cluster& c);

// What the environment is like at one time: who is there, how fast, on which network.

/// The state of a cluster between two events. By device and by resource, as the cluster numbers them.
struct conditions {
  std::vector<char> present;
  std::vector<double> speed;               ///< factor on each device's speed
  std::vector<bytes_per_second> capacity;  ///< of each resource

  [[nodiscard]] bool works(device_id d) const { return present[d.index()] != 0 && speed[d.index()] > 0; }
  friend bool operator==(const conditions&, const conditions&) = default;
};

/// The conditions that a cluster describes.
[[nodiscard]] conditions nominal(const cluster& c);

/// What an event changes; traffic and targets change no condition.
void apply(conditions& now, const event& e);

/// The largest relative change of a speed or a capacity, 1 where a device came or went: |new / old - 1|, and infinite
/// where something rises from 0.
///
/// Source  Dora, section 5: fluctuations within 10 % need no new partition.
[[nodiscard]] double change(const conditions& before, const conditions& now);

/// Values are rounded to usual * rounding_step^k: the nearest is at most 10 % away.
inline constexpr double rounding_step = 1.21;
/// How many steps a ratio is.
[[nodiscard]] inline double rounding_steps(double ratio) { return std::log(ratio) / std::log(rounding_step); }
[[nodiscard]] double rounded_value(double usual, long k);

/// The conditions that stand for all that are alike: every speed and capacity at the nearest of the values 1.21^k times the
/// cluster's own. Rounding twice changes nothing.
///
/// Source  ours; Dora, section 5, asks for no new partition within 10 %.
[[nodiscard]] conditions rounded(conditions now, const cluster& c);

/// What the simulator is told of conditions that hold from the start; those of the cluster itself need no word.
///
/// Source  semantics, section 10.
[[nodiscard]] simulator_options from_the_start(const conditions& now, const cluster& c);

// A measured bandwidth over time, scaled and turned into events.

/// From each step's time on its rate holds until the next.
///
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

/// What comes after the last step.
enum class past_the_end {
  holds,   ///< the last rate
  repeats  ///< the whole trace, again and again
};

/// More events than a timeline may take from one trace: repeated milliseconds over a day would fill the memory.
inline constexpr std::size_t max_trace_events = 2'000'000;

/// Throws invalid_input that names the step: none at all, a time that is not finite, negative, or not after the one before it,
/// a rate that is not finite or negative.
void check_trace(const bandwidth_trace& t);

/// How long a step holds. The last one is taken to be as long as the one before it; a step that is alone has no length.
[[nodiscard]] seconds length(const bandwidth_trace& t, std::size_t step);

/// From the first step to the end of the last: what is averaged, and what is repeated.
[[nodiscard]] seconds length(const bandwidth_trace& t);

/// The average over the length of a valid trace, each rate weighted by how long it holds; that of the step if it is alone.
///
/// Complexity  O(steps).
[[nodiscard]] bytes_per_second mean(const bandwidth_trace& t);

/// The trace with all rates multiplied so that their mean is `target`.
///
/// Throws  invalid_input: a trace that check_trace refuses, a target that is not finite or negative, a mean of 0 where the target
///         is above it, rates that would not be finite.
[[nodiscard]] bandwidth_trace scaled(bandwidth_trace t, bytes_per_second target);

/// What a trace does to a resource before `duration`: an event per step, also where the rate stays as it is.
///
/// Times count from the timeline's start. Before the first step the resource keeps the capacity that it has.
/// Throws      invalid_input: a trace that check_trace refuses, more than max_trace_events. Ids are left to check_timeline.
/// Complexity  O(events).
[[nodiscard]] std::vector<event> events_of(const bandwidth_trace& t, resource_id resource, seconds duration,
                                           past_the_end then = past_the_end::holds);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/timeline.ipp>
#endif
