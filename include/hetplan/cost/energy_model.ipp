// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/cost/energy_model.hpp>

namespace hetplan {

HETPLAN_INLINE void detail::refuse_energy(joules given, const device_usage& u, const device& d) {
  throw invalid_model("energy model: energy(device " + std::to_string(d.id.value) + " \"" + d.name + "\", total " +
                      to_text(u.total.value()) + " s, busy " + to_text(u.busy.value()) + " s, sent " + to_text(u.sent.value()) +
                      " B, received " + to_text(u.received.value()) + " B) = " + to_text(given.value()) + " J; expected finite >= 0");
}

HETPLAN_INLINE joules linear_power::energy(const device_usage& u, const device& d) const {
  const power_profile& p = d.power;
  const joules work = p.tells_memory() ? (p.active - p.idle) * (u.busy - u.memory_bound) + (*p.memory - p.idle) * u.memory_bound
                                       : (p.active - p.idle) * u.busy;
  return p.idle * u.total + work + p.send * u.sent + p.receive * u.received;
}

HETPLAN_INLINE joules measured_power::energy(const device_usage& u, const device& d) const {
  const auto it = tables.find(d.kind);
  if (it == tables.end() || it->second.empty()) return linear_power{}.energy(u, d);
  for (std::size_t i = 1; i < it->second.size(); ++i) {
    const double before = it->second[i - 1].busy_share, here = it->second[i].busy_share;
    if (!(before <= here))
      throw invalid_model("measured_power: the table of kind \"" + d.kind + "\" has a busy share of " + to_text(here) + " behind one of " +
                          to_text(before) + "; expected ascending shares");
  }
  const double share = u.total > seconds{} ? u.busy / u.total : 0;
  return draw(it->second, share) * u.total + d.power.send * u.sent + d.power.receive * u.received;
}

HETPLAN_INLINE watts measured_power::draw(const std::vector<point>& table, double share) {
  if (share <= table.front().busy_share) return table.front().draw;
  for (std::size_t i = 1; i < table.size(); ++i) {
    if (share > table[i].busy_share) continue;
    const double along = (share - table[i - 1].busy_share) / (table[i].busy_share - table[i - 1].busy_share);
    return table[i - 1].draw + along * (table[i].draw - table[i - 1].draw);
  }
  return table.back().draw;
}

}  // namespace hetplan
