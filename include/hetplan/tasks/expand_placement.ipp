// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/tasks/expand_placement.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>

namespace hetplan::tasks {

namespace detail {

/// Network of a table's resources and routes. Transfer times are latencies, so capacities are never used.
struct table_network {
  const place::placement_table& table;

  [[nodiscard]] std::vector<resource> resources(std::span<const device>) const {
    std::vector<resource> all;
    for (std::size_t i = 0; i < table.resources(); ++i) all.push_back({"r" + std::to_string(i), bytes_per_second(1)});
    return all;
  }
  [[nodiscard]] std::optional<route> find_route(std::span<const device>, device_id from, device_id to) const {
    if (!table.pair(from.index(), to.index()).joined()) return std::nullopt;
    route r;
    for (const std::size_t i : table.pair(from.index(), to.index()).resources) r.via.push_back({resource_id(i)});
    return r;
  }
};

}  // namespace detail

HETPLAN_INLINE placement_tasks expand(const place::placement_table& t, const place::placement_rules& r, const place::operator_schedule& s) {
  std::vector<device> devices;
  for (std::size_t k = 0; k < t.devices(); ++k) devices.push_back({.name = t.data().devices[k], .memory = bytes(1)});
  task_graph_builder out(t.devices());
  std::vector<task_graph_builder::handle> task(t.size());
  for (const std::size_t i : place::sequence_of(t, s)) {
    task[i] = out.add(
        compute_task{.stage = stage_id(i), .device = device_id(s.device[i]), .last_sample = 1, .duration_s = t.time_s(i, s.device[i])});
    out.append_to_order(task[i]);
  }
  keyed<task_graph_builder::handle> sent;  // by edge or producer, and receiver
  const auto key = [&](std::size_t edge) { return r.copies == transfer_copies::per_edge ? edge : t.edges()[edge].from; };
  for (std::size_t x = 0; x < s.transfers.size(); ++x) {
    const place::scheduled_transfer& given = s.transfers[x];
    route way;
    for (const std::size_t i : t.pair(given.from, given.to).resources) way.via.push_back({resource_id(i)});
    const auto& edge = t.edges()[given.edge];
    const auto handle = out.add(transfer{.from = device_id(given.from),
                                         .to = device_id(given.to),
                                         .from_stage = stage_id(edge.from),
                                         .to_stage = stage_id(edge.to),
                                         .priority = static_cast<int>(x),
                                         .route = out.add_route(std::move(way)),
                                         .last_sample = 1,
                                         .latency_s = place::carried_s(t, r.copies, given.edge, given.from, given.to),
                                         .release_s = given.start_s});
    out.depend(task[edge.from], handle);
    sent.insert({key(given.edge), given.to}, handle);
  }
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    const auto& edge = t.edges()[e];
    if (s.device[edge.from] == s.device[edge.to]) {
      out.depend(task[edge.from], task[edge.to]);
    } else {
      const auto* arrived = sent.find({key(e), s.device[edge.to]});
      HETPLAN_ASSERT(arrived != nullptr);  // by find_broken_rule
      out.depend(*arrived, task[edge.to]);
    }
  }
  const auto net = t.devices() > 1 ? cluster("table", devices, detail::table_network{t}) : cluster("table", devices.front());
  return {std::move(out).build(), net};
}

}  // namespace hetplan::tasks
