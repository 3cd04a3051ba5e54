// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/plan.hpp>

#include <utility>

#include <hetplan/core/sorting.hpp>

namespace hetplan {

namespace detail {

template <class Row>
[[nodiscard]] std::vector<Row> rename_rows(std::vector<Row> rows, std::span<const device_id> to, std::size_t devices) {
  std::vector<Row> moved(rows.empty() ? 0 : devices);
  for (std::size_t d = 0; d < rows.size(); ++d) {
    if (to[d].valid()) moved[to[d].index()] = std::move(rows[d]);
  }
  return moved;
}

}  // namespace detail

HETPLAN_INLINE plan rename_devices(plan p, std::span<const device_id> to, std::size_t devices) {
  const auto rename = [&](device_id& d) { d = to[d.index()]; };
  for (stage& s : p.stages) {
    for (assignment& a : s.devices) rename(a.device);
  }
  for (transfer_rule& r : p.schedule.transfers) {
    rename(r.from);
    rename(r.to);
  }
  if (p.parameter_server) rename(*p.parameter_server);
  p.schedule.orders = detail::rename_rows(std::move(p.schedule.orders), to, devices);
  return p;
}

HETPLAN_INLINE evaluation rename_devices(evaluation e, std::span<const device_id> to, std::size_t devices) {
  e.devices = detail::rename_rows(std::move(e.devices), to, devices);
  return e;
}

namespace detail {

HETPLAN_INLINE std::vector<std::tuple<layer_id, device_id, int, int, int>> placement_of(const plan& p) {
  std::vector<std::tuple<layer_id, device_id, int, int, int>> pairs;
  for (const stage& s : p.stages) {
    const int parts = s.state_shards();
    for (const layer_id l : s.layers) {
      for (int i = 0; const assignment& a : s.devices) pairs.emplace_back(l, a.device, a.tensor_parallel, parts > 1 ? i++ : 0, parts);
    }
  }
  sort_distinct(pairs);
  return pairs;
}

}  // namespace detail

HETPLAN_INLINE bool same_placement(const plan& a, const plan& b) {
  return a.stages == b.stages || detail::placement_of(a) == detail::placement_of(b);
}

}  // namespace hetplan
