// SPDX-License-Identifier: BSL-1.0
#pragma once
/// EPARA's request handler: its own capacity first, then a server drawn by its idle goodput.

#include <cstdint>
#include <optional>
#include <span>

#include <hetplan/serve/draw.hpp>
#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/request_handler.hpp>

namespace hetplan::serve {

/// The server that a request goes to: drawn with probability proportional to the idle goodput among those that would begin in time. None if
/// nobody would.
///
/// @param anyway  where none of these is idle, is one drawn by what it can do? A queue that is short enough serves whoever waits in it.
/// Complexity  O(holders of the service in the ring).
/// Source  EPARA, eq. 1. Deviation: an idle goodput below 0 counts as 0; what the paper leaves open, the case that all are 0, is ours.
[[nodiscard]] std::optional<server_id> draw_by_idle_goodput(std::span<const known_server> others, seconds latency, bool anyway,
                                                            double draw);

/// A request_handler: timed out; served by its own capacity; passed on too often; passed on; no resources.
///
/// Whom it passes on to is drawn by idle goodput, mostly without a look at all of them (rejection sampling): a server is drawn by its
/// capacity, and taken with the probability that is the idle part of it; after `attempts` in vain all are looked at.
/// Complexity  O(log holders) where much is idle, O(holders of the service in the ring) where little is.
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling).
struct offload_by_idle_goodput {
  const std::vector<service>* services =
      nullptr;  ///< whose SLOs bound how long a queue may be; without them, or with too few, it throws invalid_input
  std::uint64_t seed = 1;
  int most_offloads = 5;  ///< section 4.1
  static constexpr int attempts = 8;

  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<offload_by_idle_goodput>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/offload_by_idle_goodput.ipp>
#endif
