// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what changes while a job runs: what happens to devices, network and targets.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <hetplan/cluster/cluster.hpp>

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

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/timeline.ipp>
#endif
