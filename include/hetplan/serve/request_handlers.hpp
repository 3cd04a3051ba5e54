// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A handler that is told everything, in one place, and takes its time.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_run.hpp>

namespace hetplan::serve {

// Who serves a request, decided where it is: the door for handlers.

// What a server sees when it handles a request.

/// Its own instances as they are, and the other servers of its ring as far as it knows.
/// Source  EPARA, section 3.2; semantics, section 11 (expected ends, what servers know of each other).
class server_view {
 public:
  server_view(serving_run& run, const pending_request& r) : run_(&run), request_(&r) {}

  /// Its instances of the service, in the order of the deployment.
  [[nodiscard]] std::span<const instance_id> own(standing where) const { return run_->own(request_->here, request_->what, where); }
  /// No fault has taken it out.
  [[nodiscard]] bool works(instance_id i) const { return run_->works(i); }
  /// When the answer is expected to be where the request entered. Not for streams.
  [[nodiscard]] seconds expected_end(instance_id i) const { return seconds(run_->expected_end_s(i, *request_, request_->here)); }
  /// Frames a second that a stream could have, and whether that is all it wants.
  [[nodiscard]] double free_rate(instance_id i) const { return run_->free_rate(i); }
  [[nodiscard]] bool has_whole_rate(instance_id i) const { return run_->has_whole_rate(i); }

  /// The other holders in its ring as far as it knows, in the order of the ring behind it: without those that the request has been at,
  /// those known to be out, and those of which all that is known is too old. Good until the next call.
  [[nodiscard]] std::span<const known_server> others() const { return run_->known(*request_); }

  /// One of them without a look at all: that at which the capacities of the ring's holders by the deployment, in the order of the cloud,
  /// reach beyond this share (0 <= share < 1) of their sum; none where it is none of the others. Who draws a share at random, and takes
  /// what comes if `into` is below `idle`, draws by idle goodput. Complexity  O(log holders).
  [[nodiscard]] std::optional<server_at_share> other_at(double share) const { return run_->known_at(*request_, share); }

  /// The numbers of the servers in its ring.
  [[nodiscard]] ring_sync::ring ring() const { return run_->rings()[run_->rings().ring_of(request_->here)]; }
  /// What nobody can know in time, for handlers that are told everything: when any server of the ring would have it answered if it were
  /// there now; none where it has no instance that works. For a stream: the most that it could have a second.
  [[nodiscard]] std::optional<seconds> expected_end_at(server_id s) const;
  [[nodiscard]] double free_rate_at(server_id s) const;

 private:
  serving_run* run_;
  const pending_request* request_;
};

template <class H>
concept handles_requests = requires(H& h, const pending_request& r, const server_view& here) {
  { h.handle(r, here) } -> std::same_as<decision>;
};

/// Who serves a request, decided at the server where it is. Asked, in the order of time, when a request enters, when it has been passed
/// on to a server, and when an instance that is gone sent it back.
///
/// * The answer is a `decision`: `serve` by an instance of this server's own, `pass_on` to another server of the ring, which handles it
///   next, `turn_down` (`timed_out`, `too_many_offloads` or `no_resources`), or `ask_again` at a later time, because deciding takes time.
/// * It may remember what it was shown; nothing else must enter into its answer, so that the same run ends the same. Random numbers come
///   from `draw`.
/// * The run refuses (`invalid_model`) an instance that is not one of the server's own for the service or does not work, the server
///   itself or one outside its ring, an ask_again that is not later than now, a request that is passed on more than 63 times, and an
///   outcome that is none of a refusal.
/// * Steps that handlers share: `own_capacity`, `most_free_rate`, `in_part_or`. How to: docs/how-to/serve-requests.md.
///
/// Ships: `serve_locally` (turns down what it cannot serve in time), `offload_by_idle_goodput` (EPARA: to a server drawn by what it has
/// idle; where nobody is idle, to one that would begin in time), `pass_on_in_turn` (InterEdge: round robin), `central_handler` (SERV-P:
/// one scheduler knows all servers of the ring), `any_request_handler` (chosen at run time).
///
/// Source  EPARA, section 3.2; semantics, section 11 (handling).
template <class H>
concept request_handler = handles_requests<H>;

template <class H>
consteval bool check_request_handler() {
  static_assert(handles_requests<H>,
                "request_handler needs: hetplan::serve::decision handle(const hetplan::serve::pending_request&, const "
                "hetplan::serve::server_view& here)");
  return request_handler<H>;
}

// A request_handler chosen at run time.

/// Holds any request_handler; copies share it and what it remembers.
/// Source  ours.
class any_request_handler {
 public:
  any_request_handler() = default;
  template <class H>
    requires(!std::same_as<H, any_request_handler>)
  any_request_handler(H handler) {
    static_assert(check_request_handler<H>());
    if constexpr (request_handler<H>) handler_ = {std::move(handler), {.handle = [](void* h, auto... a) { return as<H>(h).handle(a...); }}};
  }

  explicit operator bool() const { return bool(handler_); }
  /// Throws invalid_input where it holds none.
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) {
    if (!handler_) throw invalid_input("any_request_handler: holds no handler; expected one, such as serve_locally{}");
    return handler_->handle(handler_.get(), r, here);
  }

 private:
  struct calls {
    decision (*handle)(void*, const pending_request&, const server_view&);
  };
  erased<calls> handler_;
};

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/request_handlers.ipp>
#endif
