// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A handler that is told everything, in one place, and takes its time.

#include <unordered_set>
#include <vector>

#include <hetplan/serve/handle_locally.hpp>
#include <hetplan/serve/request_handler.hpp>

namespace hetplan::serve {

/// A request_handler: one scheduler for each ring decides about requests in rounds, knowing all servers as they are, and sends each to
/// where its answer is expected first (a stream: to most free rate).
///
/// A round takes `pair_time` for each pair of servers in the ring, 85 ms for 10 and 0.77 s for 30, and decides about all that came
/// before it began. Of larger rings, every `group` servers have a scheduler of their own, and no others.
/// Complexity   O(instances of the service in the group) a decision. Determinism  on a tie the smaller server.
/// Source       SERV-P as EPARA measures it: figure 3e, more than 100 ms beyond 10 servers and more than 750 ms beyond 30; groups of 10
///              by section 5.2.
class central_handler {
 public:
  /// Throws invalid_input: a time that is negative or not finite, a group below 1.
  explicit central_handler(seconds pair_time = seconds(0.00085), int group = 10);
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here);

 private:
  [[nodiscard]] decision decide(const pending_request& r, const server_view& here) const;
  /// The servers that the scheduler of this one knows.
  [[nodiscard]] ring_sync::ring group_of(const pending_request& r, const server_view& here) const;

  seconds pair_time_;
  int group_;
  std::vector<seconds> round_end_;                ///< by the first server of a group: when the last round that is known of ends
  std::unordered_set<request_number> under_way_;  ///< whose decision is being made
};
static_assert(check_request_handler<central_handler>());

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/central_handler.ipp>
#endif
