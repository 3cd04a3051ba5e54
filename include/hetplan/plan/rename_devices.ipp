// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/rename_devices.hpp>

#include <utility>
#include <vector>

namespace hetplan {

HETPLAN_INLINE plan rename_devices(plan p, std::span<const device_id> to, std::size_t devices) {
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
