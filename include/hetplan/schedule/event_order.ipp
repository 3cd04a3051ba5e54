// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/event_order.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace hetplan::schedule {

HETPLAN_INLINE event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window) {
  const tasks::task_graph& g = cep.tasks();
  std::vector<std::tuple<double, int, std::uint32_t>> events;  // time, kind, transfer
  for (std::uint32_t i = 0; i < g.transfers.size(); ++i) {
    if (!drains(g, g.transfers[i])) continue;
    const double start = t.transfers[i].start_s + g.transfers[i].latency_s, end = std::max(start, t.transfers[i].end_s);
    if (start >= window.from_s && start < window.to_s) events.emplace_back(start, 1, i);
    if (end >= window.from_s && end < window.to_s) events.emplace_back(end, end > start ? 0 : 2, i);
  }
  std::sort(events.begin(), events.end());
  event_order order;
  for (const auto& [time, kind, transfer] : events) order.push_back({transfer, kind != 1});
  return order;
}

HETPLAN_INLINE std::vector<message_chunk> sequence_of_order(const cep_graph& cep, const event_order& order) {
  std::vector<std::pair<std::size_t, std::uint32_t>> last(cep.messages());
  for (std::uint32_t f = 0; f < cep.messages(); ++f) last[f] = {0, f};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].ends) last[cep.message_of(order[i].transfer)].first = i;
  }
  std::sort(last.begin(), last.end());
  std::vector<message_chunk> sequence;
  for (const auto& [position, message] : last) sequence.push_back({message, 0});
  return sequence;
}

}  // namespace hetplan::schedule
