// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a handler is asked, and what it answers.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/linkage.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/service.hpp>
#include <hetplan/serve/service_history.hpp>

namespace hetplan::serve {

// What an instance says when a request has left it.

/// A request by its number in the stream.
using request_number = std::uint32_t;

/// A request that has left an instance: computed, too late to begin, or taken along by a fault.
/// Source  semantics, section 11 (instances, faults).
struct ended_request {
  enum class how : std::uint8_t { done, timed_out, failed };
  request_number number = 0;
  how what = how::done;
  double at_s = 0;
  double share = 1;  ///< of a stream: the share of its frames that it got
};
using ended_requests = std::vector<ended_request>;

// Random numbers that depend on what they are for, not on who asked before.

/// A number in [0, 1) that depends on a seed, a number (of a request), a turn from 0 to 63 and an attempt, and on nothing else. Handlers
/// take the turns 0 to 62: how often the request was passed on.
/// Source  SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); semantics, section 11 (passing on).
[[nodiscard]] constexpr double draw(std::uint64_t seed, std::uint64_t number, int turn, int attempt = 0) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (64 * number + static_cast<std::uint64_t>(turn) + 1) +
                    0xD1B54A32D192ED03U * static_cast<std::uint64_t>(attempt);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

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
