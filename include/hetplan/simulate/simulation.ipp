// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/simulation.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace hetplan::detail {

HETPLAN_INLINE void check_blocking(const tasks::task_graph& g, const simulator_options& o) {
  if (o.capacities.empty() || std::none_of(g.transfers.begin(), g.transfers.end(), [](const tasks::transfer& t) { return t.blocks(); }))
    return;
  throw invalid_input("simulate: " + std::to_string(o.capacities.size()) +
                      " capacity changes for a plan whose transfers block; expected transfers that overlap computing");
}

HETPLAN_INLINE void check_follows(bool follows_capacities, const simulator_options& o) {
  if (follows_capacities || o.capacities.empty()) return;
  throw invalid_input("simulate: " + std::to_string(o.capacities.size()) +
                      " capacity changes under a network sharing that has no set_capacity");
}

HETPLAN_INLINE void check_options(const simulator_options& o, const network& net, std::size_t devices) {
  const std::size_t resources = net.resources().size();
  const auto require = [](bool ok, const char* what, std::size_t i) {
    if (!ok)
      throw invalid_input("simulate: " + std::string(what) + " " + std::to_string(i) +
                          " is out of range; expected a known id, a finite time >= 0 and a finite value >= 0");
  };
  const auto amount = [](double v) { return std::isfinite(v) && v >= 0; };
  for (std::size_t i = 0; i < o.capacities.size(); ++i) {
    const capacity_change& c = o.capacities[i];
    require(c.resource.valid() && c.resource.index() < resources && amount(c.at.value()) && amount(c.capacity.value()), "capacity change",
            i);
  }
  for (std::size_t i = 0; i < o.speeds.size(); ++i) {
    const speed_change& s = o.speeds[i];
    require(s.device.valid() && s.device.index() < devices && amount(s.at.value()) && amount(s.speed), "speed change", i);
  }
  if (o.until && !amount(o.until->value()))
    throw invalid_input("simulate: until = " + to_text(o.until->value()) + " s; expected a finite time >= 0");
  for (std::size_t i = 0; i < o.background.size(); ++i) {
    const background_transfer& b = o.background[i];
    const auto known = [&](device_id d) { return d.valid() && d.index() < devices; };
    require(known(b.from) && known(b.to) && amount(b.volume.value()) && amount(b.release.value()), "background transfer", i);
    if (net.find(b.from, b.to) == nullptr) throw invalid_input("simulate: background transfer " + std::to_string(i) + " has no route");
  }
}

}  // namespace hetplan::detail
