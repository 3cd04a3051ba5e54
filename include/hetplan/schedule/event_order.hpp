// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which order transfers start and end: what a linear program takes as decided.

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/schedule/list_schedule.hpp>
#include <hetplan/schedule/timing_rows.hpp>

namespace hetplan::schedule {

/// The first byte of a transfer may go, or its last one has arrived.
struct transfer_event {
  std::uint32_t transfer = 0;
  bool ends = false;

  friend bool operator==(const transfer_event&, const transfer_event&) = default;
};

/// Starts and ends of the transfers that drain, in a window of a run; a transfer's start stands before its end.
using event_order = std::vector<transfer_event>;

/// The order of a run's events. At one time: ends before starts, but no end before its own start; then by transfer.
///
/// @param t    a trace of cep.tasks(), or of the same transfers with priorities, in one piece each.
/// Complexity  O(n log n) in the transfers.
/// Source      Dora, section 4.2: who overlaps with whom is what makes eq. 6 not linear, so it is decided first; ours.
[[nodiscard]] inline event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window = {}) {
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

/// Flows by their last end in the order, each in one piece: a sequence that lets ends come as the order wants them.
[[nodiscard]] inline std::vector<flow_chunk> sequence_of_order(const cep_graph& cep, const event_order& order) {
  std::vector<std::pair<std::size_t, std::uint32_t>> last(cep.flows());
  for (std::uint32_t f = 0; f < cep.flows(); ++f) last[f] = {0, f};
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].ends) last[cep.flow_of(order[i].transfer)].first = i;
  }
  std::sort(last.begin(), last.end());
  std::vector<flow_chunk> sequence;
  for (const auto& [position, flow] : last) sequence.push_back({flow, 0});
  return sequence;
}

}  // namespace hetplan::schedule
