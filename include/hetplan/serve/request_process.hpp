// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Synthetic requests: how many a second enter where, and a stream of them that is a pure function of a seed.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/large_pages.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>

namespace hetplan::serve {

// What a handler is asked, and what it answers.

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

// The noun for what users ask over time.

/// One request, in 24 bytes: there are millions of them.
struct request {
  double arrival_s = 0;
  service_id service;
  server_id server;             ///< where it enters
  std::uint32_t tokens_in = 0;  ///< of a service that generates
  std::uint32_t length = 1;     ///< tokens out, or frames of a stream

  friend bool operator==(const request&, const request&) = default;
};

/// Requests in order of arrival, numbered from 0: the number settles ties. A run begins with the first of them, whatever the clock says
/// then. Source  EPARA, section 3.3 (R); semantics, section 11.
class request_stream {
 public:
  request_stream() = default;
  /// Throws invalid_input: more than 2^32 - 2 requests, an arrival that is negative, not finite or before the one before it, an id
  /// below 0, a length of 0.
  explicit request_stream(std::vector<request> requests);

  [[nodiscard]] std::size_t size() const { return requests_.size(); }
  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] const request& operator[](std::size_t i) const { return requests_[i]; }
  /// Fetches a request into the cache.
  void fetch(std::size_t i) const { prefetch(&requests_[i]); }
  [[nodiscard]] auto begin() const { return requests_.begin(); }
  [[nodiscard]] auto end() const { return requests_.end(); }
  /// 0 where there is none.
  [[nodiscard]] seconds first_arrival() const { return seconds(empty() ? 0 : requests_.front().arrival_s); }
  [[nodiscard]] seconds last_arrival() const { return seconds(empty() ? 0 : requests_.back().arrival_s); }
  /// How long after the first arrival a clock says that time. A clock that began more than a day before is read to a microsecond: one of
  /// 2026 that counts from 1970 in a double tells no more.
  [[nodiscard]] double since_first_s(double clock_s) const {
    const double since_s = clock_s - first_arrival().value();
    constexpr double day_s = 86'400;
    return first_arrival().value() > day_s ? std::round(since_s * 1e6) / 1e6 : since_s;
  }
  /// Of request i, after the first one.
  [[nodiscard]] double arrival_s(std::size_t i) const { return since_first_s(requests_[i].arrival_s); }
  /// From the first arrival to the last.
  [[nodiscard]] seconds span() const { return seconds(since_first_s(last_arrival().value())); }
  /// The time that they are taken to have come in: their span, a second where that is 0.
  [[nodiscard]] seconds window() const { return span().value() > 0 ? span() : seconds(1); }
  /// Those that arrive in [from, to) after the first.
  [[nodiscard]] std::span<const request> between(seconds from, seconds to) const;

  friend bool operator==(const request_stream&, const request_stream&) = default;

 private:
  std::vector<request> requests_;
};

/// Throws invalid_input if a request names a service or a server that is not there.
void validate(const request_stream& requests, const edge_cloud& cloud, const std::vector<service>& services);

/// How much one request asks for.
struct request_length {
  std::uint32_t tokens_in = 0;  ///< of a service that generates
  std::uint32_t length = 1;     ///< tokens out, or frames of a stream
  friend bool operator==(const request_length&, const request_length&) = default;
};

/// Requests for a service that enter at a server.
struct request_rate {
  service_id service;
  server_id server;
  double per_s = 0;  ///< on average
  double cv = 1;     ///< coefficient of variation of the gaps: 1 a Poisson process, more is burstier, 0 evenly spaced
};

struct request_process {
  std::vector<request_rate> rates = {};  ///< of each service at each server once
  seconds duration;
  std::vector<std::vector<request_length>> lengths = {};  ///< by service, each as likely as the others; none: its typical numbers, rounded
};

/// Throws invalid_input: a service or server that is not there, a pair of them twice, a rate that is negative or not finite, a cv other
/// than 0 and 0.001 to 100, a duration that is negative or not finite, 2^32 - 2 requests or more to be expected, lengths of a service that
/// has none or is not there, a length of 0.
void validate(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services);

/// Requests that arrive in [0, duration), in order of arrival; at one instant in the order of the rates.
///
/// Gaps        Gamma distributed with mean 1 / per_s. Time 0 is no arrival but any instant of a process that has always run: then
///             per_s * duration requests are expected whatever the cv, and those of several servers do not begin together.
/// Determinism what enters at one server for one service depends on the seed, that rate and the duration alone; no distribution of the
///             standard library, whose numbers differ, only its log, sqrt and pow.
/// Throws      what validate throws.
/// Complexity  O(n log n) for n requests.
/// Source      AlpaServe (OSDI 2023), its repository's Gamma process of given rate and cv; its numbers by Marsaglia and Tsang (2000); the
///             start by Cox, Renewal Theory (1962). Deviation: AlpaServe's process begins with a whole gap.
[[nodiscard]] request_stream draw_requests(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services,
                                           std::uint64_t seed);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/request_process.ipp>
#endif
