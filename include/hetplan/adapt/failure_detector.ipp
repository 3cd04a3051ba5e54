// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/failure_detector.hpp>

#include <tuple>

#include <hetplan/adapt/migration.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE device_id elect_coordinator(const cluster& c, const conditions& now) {
  const auto rank = [&](device_id d) { return std::tuple(-c[d].total_compute().value(), -c[d].usable_memory().value(), d); };
  device_id best;
  for (const device& d : c.devices()) {
    if (now.present[d.id.index()] != 0 && (!best.valid() || rank(d.id) < rank(best))) best = d.id;
  }
  if (!best.valid()) throw invalid_input("elect_coordinator: no device of cluster \"" + c.name() + "\" is there; expected at least one");
  return best;
}

HETPLAN_INLINE seconds election_time(const cluster& c, const conditions& now, bytes message) {
  migration talk;
  std::vector<fetch> round;
  for (const device& a : c.devices()) {
    for (const device& b : c.devices()) {
      if (now.present[a.id.index()] == 0 || now.present[b.id.index()] == 0) continue;
      if (is_open(c.network().find(a.id, b.id), now)) round.push_back({a.id, b.id, message, false, {}});
    }
  }
  if (!round.empty()) talk.rounds.push_back(std::move(round));
  return run_migration(talk, c, now).time;
}

HETPLAN_INLINE seconds heartbeat::noticed(seconds at) const {
  double last = std::floor(at.value() / period.value()) * period.value();
  if (last > at.value()) last -= period.value();  // the quotient was rounded up
  return std::max(at, seconds(last) + timeout + probe);
}

HETPLAN_INLINE void check_heartbeat(const heartbeat& h) {
  const auto require = [](bool ok, const char* field, double given, const std::string& expected) {
    if (!ok) throw invalid_input("heartbeat: " + std::string(field) + " = " + to_text(given) + "; expected " + expected);
  };
  require(is_finite(h.period) && h.period.value() > 0, "period", h.period.value(), "seconds > 0");
  require(is_finite(h.timeout) && h.timeout >= h.period, "timeout", h.timeout.value(),
          "at least the period, " + to_text(h.period.value()) + " s");
  require(is_finite(h.probe) && h.probe.value() >= 0, "probe", h.probe.value(), "finite seconds >= 0");
  require(is_finite(h.beat) && h.beat.value() >= 0, "beat", h.beat.value(), "finite bytes >= 0");
}

}  // namespace hetplan::adapt
