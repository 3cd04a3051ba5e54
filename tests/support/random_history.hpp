// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Valid random timelines, and random histories whose totals agree with their stretches.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/timeline.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

/// Returns a timeline of up to 40 events of all kinds that the cluster allows.
inline adapt::timeline random_timeline(random_source& random, const cluster& c) {
  adapt::timeline t{seconds(random.spread(1, 16))};
  std::vector<char> here(c.size(), 1);
  double at = 0;
  for (int n = random.integer(0, 40); n > 0; --n) {
    if (random.chance(0.8)) at += random.unit() * t.duration.value() / 20;  // the others are simultaneous
    const device_id d(random.index(c.size())), other(random.index(c.size()));
    const auto add = [&](adapt::event_payload what) { t.events.push_back({seconds(at), what}); };
    switch (random.integer(0, 5)) {
      case 0:
        if (!c.network().resources().empty()) {
          const double rate = random.chance(0.25) ? 0 : random.spread(1e5, 10);
          add(adapt::capacity_becomes{resource_id(random.index(c.network().resources().size())), bytes_per_second(rate)});
        }
        break;
      case 1: add(adapt::speed_becomes{d, random.chance(0.2) ? 0 : random.between(0.1, 2)}); break;
      case 2:
        if (here[d.index()] == 0) {
          add(adapt::device_joins{d});
          here[d.index()] = 1;
        } else if (std::count(here.begin(), here.end(), 1) > 1) {
          add(adapt::device_leaves{d});
          here[d.index()] = 0;
        }
        break;
      case 3: {
        if (c.network().find(d, other) == nullptr) break;
        const double volume = random.spread(1, 30);  // separate statement: argument order is unspecified
        add(adapt::transfer_begins{d, other, bytes(volume), random.integer(-2, 2)});
        break;
      }
      default: {
        adapt::qoe_becomes q;
        if (random.chance(0.7)) q.latency = seconds(random.spread(0.01, 8));
        if (!q.latency || random.chance(0.3)) q.deadline = seconds(random.spread(1, 16));
        add(q);
      }
    }
  }
  return t;
}

/// Returns a possible history of a timeline: contiguous stretches up to its end, adoptions between them, and totals that are their sums.
///
/// @param plans  plans of the history; at least one.
inline adapt::history random_history(random_source& random, const adapt::timeline& t, const cluster& c, std::vector<plan> plans,
                                     int stretches) {
  adapt::history h;
  h.plans = std::move(plans);
  h.device_energy_J.assign(c.size(), 0);
  std::size_t running = 0;
  double now = 0;
  for (int i = 0; i < stretches; ++i) {
    adapt::stretch s;
    s.start_s = now;
    s.end_s = i + 1 == stretches ? t.duration.value() : now + random.unit() * 2 * (t.duration.value() - now) / (stretches - i);
    s.plan = running;
    const int kind = random.integer(0, 9);
    s.what = kind < 6 ? adapt::activity::running : static_cast<adapt::activity>(kind - 5);
    if (s.what == adapt::activity::running) {
      s.iterations = random.integer(1, 50);
      s.response_s = (s.end_s - s.start_s) / static_cast<double>(s.iterations);
      s.violates = random.chance(0.3);
    }
    s.energy_J = random.between(0, 100);
    now = s.end_s;
    h.iterations += s.iterations;
    if (s.violates) h.violations += s.iterations;
    if (s.what == adapt::activity::cut_off) ++h.cut_off;
    if (s.what == adapt::activity::migrating || s.what == adapt::activity::stalled) h.stall_s += s.end_s - s.start_s;
    h.energy_J += s.energy_J;
    h.device_energy_J[random.index(c.size())] += s.energy_J;
    if (s.what == adapt::activity::migrating) {
      adapt::adoption a;
      a.done_s = s.end_s;
      a.decided_s = s.start_s;
      a.caused_s = s.start_s * random.unit();
      a.from = running;
      a.to = running = random.index(h.plans.size());
      a.reached = static_cast<adapt::rung>(random.integer(0, 3));
      a.reason = "<reason> \"" + std::to_string(i) + "\" & more";
      a.stall_s = s.end_s - s.start_s;
      a.moved_bytes = random.spread(1e3, 20);
      a.moved_J = s.energy_J;
      h.moved_bytes += a.moved_bytes;
      h.reaction_s = std::max(h.reaction_s, a.done_s - a.caused_s);
      ++h.switches;
      h.adoptions.push_back(std::move(a));
    }
    h.stretches.push_back(s);
  }
  h.lost = random.integer(0, 3);
  if (random.chance(0.3)) h.finished_s = t.duration.value() * random.unit();
  h.missed_deadline = random.chance(0.3);
  if (random.chance(0.2)) h.status = {outcome::infeasible, "no plan fits"};
  return h;
}

}  // namespace hetplan::test
