// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who serves a request, decided where it is: the door for handlers.

#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/serving_run.hpp>

namespace hetplan::serve {

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
    requires(!std::same_as<std::remove_cvref_t<H>, any_request_handler>)
  any_request_handler(H&& handler)  // NOLINT(bugprone-forwarding-reference-overload): every handler converts
      : handler_(std::make_shared<held<std::remove_cvref_t<H>>>(std::forward<H>(handler))) {
    static_assert(check_request_handler<std::remove_cvref_t<H>>());
  }

  explicit operator bool() const { return handler_ != nullptr; }
  /// Throws invalid_input where it holds none.
  [[nodiscard]] decision handle(const pending_request& r, const server_view& here) {
    if (handler_ == nullptr) throw invalid_input("any_request_handler: holds no handler; expected one, such as serve_locally{}");
    return handler_->handle(r, here);
  }

 private:
  struct base {
    virtual ~base() = default;
    [[nodiscard]] virtual decision handle(const pending_request& r, const server_view& here) = 0;
  };
  template <class H>
  struct held final : base {
    template <class T>
    explicit held(T&& h) : handler(std::forward<T>(h)) {}
    [[nodiscard]] decision handle(const pending_request& r, const server_view& here) override { return handler.handle(r, here); }
    H handler;
  };
  std::shared_ptr<base> handler_;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/request_handler.ipp>
#endif
