// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which order transfers start and end: what a linear program takes as decided.

#include <cstdint>
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
[[nodiscard]] event_order order_of_run(const cep_graph& cep, const trace& t, const time_window& window = {});

/// Flows by their last end in the order, each in one piece: a sequence that lets ends come as the order wants them.
[[nodiscard]] std::vector<message_chunk> sequence_of_order(const cep_graph& cep, const event_order& order);

}  // namespace hetplan::schedule

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/event_order.ipp>
#endif
