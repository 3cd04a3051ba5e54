// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests, decisions about them, and synthetic streams that are a pure function of a seed.

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

/// The number of a request in its stream.
using request_number = std::uint32_t;

/// A request that has left an instance: computed, too late to begin, failed by a fault, or too long for the cache.
/// Source  semantics, section 11 (instances, faults).
struct ended_request {
  enum class how : std::uint8_t { done, timed_out, failed, refused };
  request_number number = 0;
  how what = how::done;
  double at_s = 0;
  double share = 1;       ///< served share of a stream's frames
  double first_s = -1;    ///< its first token; negative without tokens
  double between_s = -1;  ///< mean from its first token to its last; negative for one token or none
};
using ended_requests = std::vector<ended_request>;

/// Returns a number in [0, 1) that depends only on a seed, a number (of a request), a turn from 0 to 63 and an attempt. Handlers use the
/// turns 0 to 62: how often the request was passed on.
/// Source  SplitMix64 (Steele, Lea and Flood, OOPSLA 2014); semantics, section 11 (passing on).
[[nodiscard]] constexpr double draw(std::uint64_t seed, std::uint64_t number, int turn, int attempt = 0) {
  std::uint64_t z = seed + 0x9E3779B97F4A7C15U * (64 * number + static_cast<std::uint64_t>(turn) + 1) +
                    0xD1B54A32D192ED03U * static_cast<std::uint64_t>(attempt);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/// A request for a server to handle now.
/// Source  EPARA, section 3.2; semantics, section 11 (handling).
struct pending_request {
  request_number number = 0;
  service_id what;
  server_id entered;
  server_id here;
  seconds now;
  seconds latency;   ///< SLO of the service
  seconds deadline;  ///< arrival plus SLO
  bool is_stream = false;
  std::span<const server_id> path;  ///< servers that have handled it; the last one is `here`
  seconds begins_before = {};       ///< the deadline by so much: its first token would be late

  /// True if the SLO is over, or the time for its first token, up to rounding; no instance begins with it any more.
  [[nodiscard]] bool timed_out() const { return at_most((deadline - begins_before).value(), now.value(), latency.value()); }
  /// True if an answer at `end` is within the SLO, up to rounding.
  [[nodiscard]] bool in_time(seconds end) const { return at_most(end.value(), deadline.value(), latency.value()); }
  [[nodiscard]] int offloads() const { return static_cast<int>(path.size()) - 1; }
};

/// What a server knows of another holder of the service.
struct known_server {
  server_id server;
  double whole = 0;     ///< c: requests (frames) per second by the deployment
  double capacity = 0;  ///< p^: capacity of the instances that have loaded and are not out
  double idle = 0;      ///< p^ - p: unused capacity, may be below 0
  seconds wait;         ///< Q: expected wait of a new request
  seconds age;          ///< age of this knowledge
};

/// A holder of a service, drawn by a share of the total capacity.
struct server_at_share {
  known_server known;
  double into = 0;  ///< distance of the share from the start of the holder's capacity, per second
};

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
  /// Delays the decision, which takes time: the handler is called again then, later than now.
  [[nodiscard]] static decision ask_again(seconds at) { return {.kind = what::ask_again, .at = at}; }
};

/// One request, in 24 bytes, because there are millions.
struct request {
  double arrival_s = 0;
  service_id service;
  server_id server;             ///< where it enters
  std::uint32_t tokens_in = 0;  ///< of services that generate tokens
  std::uint32_t length = 1;     ///< tokens out, or frames of a stream

  friend bool operator==(const request&, const request&) = default;
};

/// Requests in order of arrival; their numbers from 0 break ties. A run begins with the first, whatever the clock.
/// Source  EPARA, section 3.3 (R); semantics, section 11.
class request_stream {
 public:
  request_stream() = default;
  /// Throws invalid_input: more than 2^32 - 2 requests, a negative, non-finite or unordered arrival, a negative id, a length of 0.
  explicit request_stream(std::vector<request> requests);

  [[nodiscard]] std::size_t size() const { return requests_.size(); }
  [[nodiscard]] bool empty() const { return requests_.empty(); }
  [[nodiscard]] const request& operator[](std::size_t i) const { return requests_[i]; }
  void fetch(std::size_t i) const { prefetch(&requests_[i]); }
  [[nodiscard]] auto begin() const { return requests_.begin(); }
  [[nodiscard]] auto end() const { return requests_.end(); }
  /// Returns 0 without requests.
  [[nodiscard]] seconds first_arrival() const { return seconds(empty() ? 0 : requests_.front().arrival_s); }
  /// Returns the time since the first arrival. A clock that began over a day before is read to a microsecond: a double that counts from
  /// 1970 resolves no more.
  [[nodiscard]] double since_first_s(double clock_s) const {
    const double since_s = clock_s - first_arrival().value();
    constexpr double day_s = 86'400;
    return first_arrival().value() > day_s ? std::round(since_s * 1e6) / 1e6 : since_s;
  }
  /// Returns the arrival of request i, after the first one.
  [[nodiscard]] double arrival_s(std::size_t i) const { return since_first_s(requests_[i].arrival_s); }
  /// Returns the time from the first arrival to the last.
  [[nodiscard]] seconds span() const { return seconds(empty() ? 0 : since_first_s(requests_.back().arrival_s)); }
  /// Returns the time in which the requests came: their span, or a second if that is 0.
  [[nodiscard]] seconds window() const { return span().value() > 0 ? span() : seconds(1); }
  /// Returns the requests that arrive in [from, to) after the first.
  [[nodiscard]] std::span<const request> between(seconds from, seconds to) const;

  friend bool operator==(const request_stream&, const request_stream&) = default;

 private:
  std::vector<request> requests_;
};

/// Throws invalid_input for a request with an unknown service or server.
void validate(const request_stream& requests, const edge_cloud& cloud, const std::vector<service>& services);

struct request_length {
  std::uint32_t tokens_in = 0;  ///< of services that generate tokens
  std::uint32_t length = 1;     ///< tokens out, or frames of a stream
  friend bool operator==(const request_length&, const request_length&) = default;
};

struct request_rate {
  service_id service;
  server_id server;
  double per_s = 0;  ///< mean
  double cv = 1;     ///< coefficient of variation of the gaps: 1 a Poisson process, above 1 bursty, 0 evenly spaced
};

struct request_process {
  std::vector<request_rate> rates = {};  ///< each service at each server once
  seconds duration;
  std::vector<std::vector<request_length>> lengths = {};  ///< by service, equally likely; none: its typical numbers, rounded
};

/// Throws invalid_input: an unknown service or server, a repeated pair of them, a negative or non-finite rate or duration, a cv other than
/// 0 and 0.001 to 100, 2^32 - 2 or more expected requests, lengths of an unknown service or of one without any, a length of 0.
void validate(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services);

/// Returns random requests that arrive in [0, duration), in order of arrival; at one instant in the order of the rates.
///
/// Gaps        gamma distributed with mean 1 / per_s. The process is stationary: time 0 is any instant, not an arrival. So per_s *
///             duration requests are expected whatever the cv, and servers do not begin together.
/// Determinism the requests at a server for a service depend only on the seed, that rate and the duration. Of the standard library
///             only log, sqrt and pow are used, not its distributions, whose numbers differ.
/// Throws      as validate.
/// Complexity  O(n log n) for n requests.
/// Source      AlpaServe (OSDI 2023), its repository's Gamma process of given rate and cv; its numbers by Marsaglia and Tsang (2000); the
///             start by Cox, Renewal Theory (1962). Deviation: AlpaServe's process begins with a whole gap.
[[nodiscard]] request_stream draw_requests(const request_process& process, const edge_cloud& cloud, const std::vector<service>& services,
                                           std::uint64_t seed);

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/request_process.ipp>
#endif
