// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A handler that is told everything, in one place, and takes its time.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include <hetplan/serve/request_handler.hpp>
#include <hetplan/serve/request_process.hpp>

namespace hetplan::serve {

// What a server can do with a request itself: the step that handlers share.

/// The instance that a server serves a request with, if its own capacity is enough: the soonest of those whose answer is expected within
/// the SLO (for a stream: with the most free rate, and all that it wants), first among those on its own GPUs, then among those that span
/// servers, then among registered devices. Complexity  O(its instances of the service). Determinism  on a tie the first of the deployment.
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling, step 2).
[[nodiscard]] std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here);

/// The instance with the most free rate, if any has some: where a stream that nobody else takes is served in part.
[[nodiscard]] std::optional<instance_id> most_free_rate(const server_view& here);

/// Turned down; but a stream is served in part where there is some rate.
[[nodiscard]] decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here);

/// A request_handler that passes nothing on: AlpaServe, and every system that plans for one place.
struct serve_locally {
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<serve_locally>());

// EPARA's request handler: its own capacity first, then a server drawn by its idle goodput.

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

// A handler that passes requests on in turn, whoever is idle.

/// A request_handler: its own capacity first, then the next of the other holders, round robin, each server for itself.
///
/// Complexity  O(holders of the service in the ring).
/// Source      InterEdge as EPARA compares itself with it (section 5.1: round-robin forwarding). Deviation: only servers that hold the
///             service and are not known to be out take turns.
class pass_on_in_turn {
 public:
  explicit pass_on_in_turn(int most_offloads = 5) : most_offloads_(most_offloads) {}
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here);

 private:
  int most_offloads_;
  std::vector<std::size_t> turn_;  ///< by server
};
static_assert(check_request_handler<pass_on_in_turn>());

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
#include <hetplan/serve/request_handlers.ipp>
#endif
