// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/compose_parts.hpp>

#include <algorithm>
#include <cstdint>

#include <hetplan/place/device_memory.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace HETPLAN_NAMESPACE::place {

HETPLAN_INLINE operator_schedule compose_parts(const known_parts& known, const part_path& path) {
  const placement_table& t = known.table();
  operator_schedule s{.device = std::vector<std::size_t>(t.size(), partial_schedule::none), .start_s = std::vector<double>(t.size(), 0)};
  double before_s = 0;
  for (std::size_t i = 0; i < known.parts().size(); ++i) {
    const operator_schedule& part = known.chosen(i, path.steps[i]);
    for (std::size_t j = known.parts()[i].entry; j < known.parts()[i].operators.size(); ++j) {
      s.device[known.parts()[i].operators[j]] = part.device[j];
      s.start_s[known.parts()[i].operators[j]] = before_s + part.start_s[j];
    }
    if (known.series().exact()) {
      const std::vector<std::size_t> edges = part_edges(t, known.parts()[i]);
      for (scheduled_transfer x : part.transfers) {
        x.edge = edges[x.edge];
        x.start_s += before_s;
        x.end_s += before_s;
        s.transfers.push_back(x);
      }
    }
    before_s += part.makespan_s;
  }
  s.makespan_s = before_s;
  return s;
}

HETPLAN_INLINE operator_schedule schedule_sides(const known_parts& known, const operator_schedule& parts) {
  if (known.series().exact()) return parts;
  const placement_table& t = known.table();
  std::vector<double> start_s = parts.start_s;
  for (const std::size_t v : t.order()) {
    for (const std::uint32_t e : t.in_edges(v)) start_s[v] = std::max(start_s[v], start_s[t.edges()[e].from]);
  }
  std::vector<std::size_t> order(t.order().begin(), t.order().end());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return start_s[a] < start_s[b]; });
  return schedule_greedily(
      t, known.rules(), order, [](std::size_t, std::size_t, const trial& at) { return at.end_s; },
      [&](std::size_t v, std::size_t k) { return parts.device[v] == partial_schedule::none || parts.device[v] == k; });
}

}  // namespace HETPLAN_NAMESPACE::place
