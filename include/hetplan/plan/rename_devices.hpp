// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A plan for the same devices under other numbers.

#include <span>
#include <utility>
#include <vector>

#include <hetplan/plan/plan.hpp>

namespace hetplan {

/// @param to       by device id in the plan: its id in the answer; valid for every device that the plan names.
/// @param devices  how many the answer's cluster has.
/// A prediction goes along: what devices outside do is nothing, what resources carry stays.   Complexity  O(plan).
[[nodiscard]] inline plan rename_devices(plan p, std::span<const device_id> to, std::size_t devices) {
  const auto rename = [&](device_id& d) { d = to[d.index()]; };
  const auto move_rows = [&]<class Row>(std::vector<Row>& rows) {
    std::vector<Row> moved(rows.empty() ? 0 : devices);
    for (std::size_t d = 0; d < rows.size(); ++d) {
      if (to[d].valid()) moved[to[d].index()] = std::move(rows[d]);
    }
    rows = std::move(moved);
  };
  for (stage& s : p.stages) {
    for (assignment& a : s.devices) rename(a.device);
  }
  for (transfer_rule& r : p.schedule.transfers) {
    rename(r.from);
    rename(r.to);
  }
  if (p.parameter_server) rename(*p.parameter_server);
  move_rows(p.schedule.orders);
  if (p.predicted) move_rows(p.predicted->devices);
  return p;
}

}  // namespace hetplan
