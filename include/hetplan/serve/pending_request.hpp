// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a handler is asked, and what it answers.

#include <cstdint>
#include <span>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/service.hpp>
#include <hetplan/serve/service_history.hpp>

namespace hetplan::serve {

/// A request that a server is asked to handle now.
/// Source  EPARA, section 3.2; semantics, section 11 (handling).
struct pending_request {
  request_number number = 0;
  service_id what;
  server_id entered;
  server_id here;
  seconds now;
  seconds latency;   ///< its service's SLO
  seconds deadline;  ///< arrival and SLO
  bool is_stream = false;
  std::span<const server_id> path;  ///< where it has been handled; the last one is here

  /// Is its SLO over, but for rounding? Nobody begins with it any more.
  [[nodiscard]] bool timed_out() const { return at_most(deadline.value(), now.value(), latency.value()); }
  /// Would it be answered within its SLO, but for rounding, if its answer were there then?
  [[nodiscard]] bool in_time(seconds end) const { return at_most(end.value(), deadline.value(), latency.value()); }
  [[nodiscard]] int offloads() const { return static_cast<int>(path.size()) - 1; }
};

/// What a server knows of another one that holds the service.
struct known_server {
  server_id server;
  double whole = 0;     ///< c: requests (frames) a second that it can serve by the deployment
  double capacity = 0;  ///< p^: of that what has loaded and is not out
  double idle = 0;      ///< p^ - p: what of that it does not, may be below 0
  seconds wait;         ///< of a newcomer: Q
  seconds age;          ///< of all this
};

/// One of those that lead instances of a service, drawn by a share of what they can do together.
struct server_at_share {
  known_server known;
  double into = 0;  ///< how far the share reaches into what this one can do, a second
};

/// What becomes of a request.
struct decision {
  enum class what : std::uint8_t { serve, pass_on, turn_down, ask_again };
  what kind = what::turn_down;
  instance_id instance = {};
  server_id server = {};
  request_outcome outcome = request_outcome::no_resources;
  seconds at = {};

  [[nodiscard]] static decision serve(instance_id i) { return {.kind = what::serve, .instance = i}; }
  [[nodiscard]] static decision pass_on(server_id s) { return {.kind = what::pass_on, .server = s}; }
  [[nodiscard]] static decision turn_down(request_outcome o) { return {.kind = what::turn_down, .outcome = o}; }
  /// The decision takes time: ask again then, later than now.
  [[nodiscard]] static decision ask_again(seconds at) { return {.kind = what::ask_again, .at = at}; }
};

}  // namespace hetplan::serve
