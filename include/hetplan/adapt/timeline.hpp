// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for life with change: what happens to devices, network and wishes while a job runs.

#include <cmath>
#include <optional>
#include <string>
#include <utility>
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

using happening = std::variant<capacity_becomes, speed_becomes, device_leaves, device_joins, transfer_begins, qoe_becomes>;

struct event {
  seconds at;
  happening what;
  friend bool operator==(const event&, const event&) = default;
};

/// Events in time order, those of one instant in list order; all devices are there at the start, at full speed.
struct timeline {
  seconds duration;
  std::vector<event> events = {};
  friend bool operator==(const timeline&, const timeline&) = default;
};

/// Throws invalid_input that names the event and what is wrong with it: a time before the one before it or not finite, an
/// unknown id, a negative or non-finite amount, a transfer without a route or to itself, a device that leaves twice or joins
/// while it is there, the last device leaving, a wish that says nothing or is not above zero.
/// Events at or after the end never happen, but are checked all the same.
inline void check_timeline(const timeline& t, const cluster& c) {
  const auto amount = [](double v) { return std::isfinite(v) && v >= 0; };
  if (!std::isfinite(t.duration.value()) || t.duration.value() <= 0) {
    throw invalid_input("timeline: duration = " + to_text(t.duration.value()) + "; expected seconds > 0");
  }
  std::vector<char> here(c.size(), 1);
  std::size_t left = c.size();
  double before = 0;
  for (std::size_t i = 0; i < t.events.size(); ++i) {
    const event& e = t.events[i];
    const auto require = [&](bool ok, const std::string& what) {
      if (!ok) throw invalid_input("timeline: event " + std::to_string(i) + " at " + to_text(e.at.value()) + " s: " + what);
    };
    const auto known = [&](device_id d) { return d.valid() && d.index() < c.size(); };
    require(amount(e.at.value()), "expected a finite time >= 0");
    require(e.at.value() >= before, "expected a time >= " + to_text(before) + " s, that of the event before it");
    before = e.at.value();
    if (const auto* x = std::get_if<capacity_becomes>(&e.what)) {
      require(x->resource.valid() && x->resource.index() < c.network().resources().size(), "names no resource of cluster \"" + c.name() + "\"");
      require(amount(x->capacity.value()), "capacity = " + to_text(x->capacity.value()) + "; expected a finite rate >= 0");
    } else if (const auto* s = std::get_if<speed_becomes>(&e.what)) {
      require(known(s->device), "names no device of cluster \"" + c.name() + "\"");
      require(amount(s->speed), "speed = " + to_text(s->speed) + "; expected a finite factor >= 0");
    } else if (const auto* l = std::get_if<device_leaves>(&e.what)) {
      require(known(l->device), "names no device of cluster \"" + c.name() + "\"");
      require(here[l->device.index()] != 0, "device \"" + c[l->device].name + "\" leaves, but is not there");
      require(left > 1, "device \"" + c[l->device].name + "\" leaves, and no device is left; expected at least one");
      here[l->device.index()] = 0;
      --left;
    } else if (const auto* j = std::get_if<device_joins>(&e.what)) {
      require(known(j->device), "names no device of cluster \"" + c.name() + "\"");
      require(here[j->device.index()] == 0, "device \"" + c[j->device].name + "\" joins, but is there already");
      here[j->device.index()] = 1;
      ++left;
    } else if (const auto* b = std::get_if<transfer_begins>(&e.what)) {
      require(known(b->from) && known(b->to), "names no device of cluster \"" + c.name() + "\"");
      require(c.network().find(b->from, b->to) != nullptr,
              "transfer from \"" + c[b->from].name + "\" to \"" + c[b->to].name + "\", but the cluster has no route for that pair");
      require(amount(b->volume.value()), "transfer of " + to_text(b->volume.value()) + " B; expected finite bytes >= 0");
    } else if (const auto* q = std::get_if<qoe_becomes>(&e.what)) {
      const auto positive = [&](const std::optional<seconds>& w) { return !w || (std::isfinite(w->value()) && w->value() > 0); };
      require(q->latency || q->deadline, "qoe without latency or deadline");
      require(positive(q->latency), "qoe.latency = " + to_text(q->latency.value_or(seconds{}).value()) + "; expected seconds > 0");
      require(positive(q->deadline), "qoe.deadline = " + to_text(q->deadline.value_or(seconds{}).value()) + "; expected seconds > 0");
    }
  }
}

}  // namespace hetplan::adapt
