// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Request handlers, which decide which server serves a request.

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

/// What a handler sees: the server's own instances as they are, and the other servers of its ring as far as they are known.
/// Source  EPARA, section 3.2; semantics, section 11 (expected ends, what servers know of each other).
class server_view {
 public:
  server_view(serving_run& run, const pending_request& r) : run_(&run), request_(&r) {}

  /// Returns the server's instances of the service, in the order of the deployment.
  [[nodiscard]] std::span<const instance_id> own(standing where) const { return run_->own(request_->here, request_->what, where); }
  /// True if no fault has taken the instance out.
  [[nodiscard]] bool works(instance_id i) const { return run_->works(i); }
  /// Returns when the answer is expected where the request entered. Not for streams.
  [[nodiscard]] seconds expected_end(instance_id i) const { return seconds(run_->expected_end_s(i, *request_, request_->here)); }
  /// Returns the frames per second that a stream could have, and whether they are all that it wants.
  [[nodiscard]] double free_rate(instance_id i) const { return run_->free_rate(i); }
  [[nodiscard]] bool has_whole_rate(instance_id i) const { return run_->has_whole_rate(i); }

  /// Returns the other holders in the ring as far as they are known, in ring order behind this server. Excluded are holders that the
  /// request has visited, that are known to be out, or whose last known state is too old. Valid until the next call.
  [[nodiscard]] std::span<const known_server> others() const { return run_->known(*request_); }

  /// Returns the holder at which the ring's capacities by the deployment, summed in the order of the cloud, exceed this share (0 <=
  /// share < 1) of their total; empty if it is none of `others`. Drawing a random share, and accepting if `into` is below `idle`, draws
  /// by idle goodput without a look at all holders. Complexity  O(log holders).
  [[nodiscard]] std::optional<server_at_share> other_at(double share) const { return run_->known_at(*request_, share); }

  [[nodiscard]] ring_sync::ring ring() const { return run_->rings()[run_->rings().ring_of(request_->here)]; }
  /// Returns what no real handler can know in time: when a server of the ring would have answered the request if it were there now;
  /// empty without a working instance. For a stream: the largest free rate.
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

/// Decides who serves a request, at the server where it is. Called in order of time: when a request enters, when it has been passed on to
/// a server, and when an instance that is gone has sent it back.
///
/// * The result is a `decision`: `serve` by an instance of this server, `pass_on` to another server of the ring, which handles it next,
///   `turn_down` (`timed_out`, `too_many_offloads` or `no_resources`), or `ask_again` at a later time, because deciding takes time.
/// * A handler may remember what it was shown, but must use nothing else, so that a run is reproducible. Random numbers come from `draw`.
/// * The run throws `invalid_model` for an instance that does not work or is not the server's own for the service, a receiver that is the
///   server itself or outside its ring, more than 63 hand-overs, an `ask_again` not later than now, and an outcome that is no refusal.
/// * Steps that handlers share: `own_capacity`, `most_free_rate`, `in_part_or`. How to: docs/how-to/serve-requests.md.
///
/// Ships: `serve_locally` (turns down what it cannot serve in time), `offload_by_idle_goodput` (EPARA: to a server drawn by idle goodput
/// or, if none is idle, to one that would begin in time), `pass_on_in_turn` (InterEdge: round robin), `central_handler` (SERV-P: one
/// scheduler knows all servers of the ring), `any_request_handler` (chosen at run time).
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

/// A type-erased request_handler; copies share it and its state.
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
  /// Throws invalid_input if it is empty.
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) {
    if (!handler_) throw invalid_input("any_request_handler: holds no handler; expected one, such as serve_locally{}");
    return handler_.call(&calls::handle, r, here);
  }

 private:
  struct calls {
    decision (*handle)(void*, const pending_request&, const server_view&);
  };
  erased<calls> handler_;
};

/// Returns the instance by which a server can serve a request itself: the one with the earliest answer within the SLO (for a stream: the
/// most free rate, if that is all it wants), first on its own GPUs, then across servers, then on registered devices. Complexity  O(its
/// instances of the service). Determinism  ties: the first of the deployment.
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling, step 2).
[[nodiscard]] std::optional<instance_id> own_capacity(const pending_request& r, const server_view& here);

/// Returns the instance with the most free rate, if any: it serves a stream in part that no server serves whole.
[[nodiscard]] std::optional<instance_id> most_free_rate(const server_view& here);

/// Returns the refusal, but serves a stream in part if any rate is free.
[[nodiscard]] decision in_part_or(request_outcome refusal, const pending_request& r, const server_view& here);

/// A request_handler that passes nothing on: AlpaServe, and every system that plans for one place.
struct serve_locally {
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<serve_locally>());

/// Returns the receiver of a request, drawn in proportion to idle goodput among the servers that would begin in time; empty if none would.
/// @param anyway  true: if none of them is idle, one is drawn by capacity, since a short enough queue serves everything in it.
/// Complexity  O(holders of the service in the ring).
/// Source  EPARA, eq. 1. Deviation: an idle goodput below 0 counts as 0; the case that all are 0, left open by the paper, is ours.
[[nodiscard]] std::optional<server_id> draw_by_idle_goodput(std::span<const known_server> others, seconds latency, bool anyway,
                                                            double draw);

/// A request_handler that tries in this order: timed out, own capacity, passed on too often, passing on, no resources.
///
/// The receiver is drawn by idle goodput, mostly by rejection sampling: a server is drawn by capacity and accepted with the
/// probability of its idle part. After `attempts` failures all are considered.
/// Complexity  O(log holders) with much idle capacity, O(holders of the service in the ring) with little.
/// Source  EPARA, section 3.2 and figure 6; semantics, section 11 (handling).
struct offload_by_idle_goodput {
  const std::vector<service>* services = nullptr;  ///< services whose SLOs bound queues; none or too few throw invalid_input
  std::uint64_t seed = 1;
  int most_offloads = 5;  ///< section 4.1
  static constexpr int attempts = 8;

  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) const;
};
static_assert(check_request_handler<offload_by_idle_goodput>());

/// A request_handler that uses its own capacity first, then the other holders by round robin, in a separate turn for each server.
/// Complexity  O(holders of the service in the ring).
/// Source      InterEdge as EPARA compares itself with it (section 5.1: round-robin forwarding). Deviation: only holders of the
///             service that are not known to be out take turns.
class pass_on_in_turn {
 public:
  explicit pass_on_in_turn(int most_offloads = 5) : most_offloads_(most_offloads) {}
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here);

 private:
  int most_offloads_;
  std::vector<std::size_t> turn_;  ///< by server
};
static_assert(check_request_handler<pass_on_in_turn>());

/// A request_handler with one scheduler per ring, which knows all servers as they are. It decides in rounds and sends each request to
/// where its answer is expected first (a stream: to the most free rate).
///
/// A round takes `pair_time` for each pair of servers in the ring, 85 ms for 10 and 0.77 s for 30, and decides about all requests that
/// came before it began. In larger rings every `group` servers have a scheduler of their own, which knows no others.
/// Complexity   O(instances of the service in the group) per decision. Determinism  ties: the smaller server.
/// Source       SERV-P as EPARA measures it: figure 3e, more than 100 ms beyond 10 servers and more than 750 ms beyond 30; groups of 10
///              by section 5.2.
class central_handler {
 public:
  /// Throws invalid_input: a negative or non-finite time, a group below 1.
  explicit central_handler(seconds pair_time = seconds(0.00085), int group = 10);
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here);

 private:
  [[nodiscard]] decision decide(const pending_request& r, const server_view& here) const;
  /// Returns the servers that this server's scheduler knows.
  [[nodiscard]] ring_sync::ring group_of(const pending_request& r, const server_view& here) const;

  seconds pair_time_;
  int group_;
  std::vector<seconds> round_end_;                ///< by first server of a group: end of the last known round
  std::unordered_set<request_number> under_way_;  ///< requests whose decision is in progress
};
static_assert(check_request_handler<central_handler>());

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/request_handlers.ipp>
#endif
