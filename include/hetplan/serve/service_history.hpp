// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what became of requests.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/serve/latency_histogram.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

/// How a request ended; each does once.
enum class request_outcome : std::uint8_t {
  served,             ///< within its SLO, or as a stream at its whole rate
  late,               ///< answered after its SLO
  in_part,            ///< a stream at less than it wanted
  timed_out,          ///< its SLO was over before it began
  too_many_offloads,  ///< nobody could, and it may be passed on no more
  no_resources,       ///< nobody could, as far as is known
  lost,               ///< its server is not there
  failed,             ///< a fault took it along
};
inline constexpr std::size_t request_outcomes = 8;

[[nodiscard]] constexpr std::string_view to_string(request_outcome o) {
  constexpr std::array<std::string_view, request_outcomes> names = {"served",       "late", "in_part", "timed_out", "too_many_offloads",
                                                                    "no_resources", "lost", "failed"};
  return names[static_cast<std::size_t>(o)];
}

/// One request, where they are asked for. In a run that was stopped, one that has not ended has no server.
struct request_record {
  request_outcome outcome = request_outcome::lost;
  double end_s = 0;  ///< by the clock of the requests
  server_id server;  ///< where it was handled last
  int offloads = 0;
  double credit = 0;
  [[nodiscard]] bool has_ended() const { return server.valid(); }
  friend bool operator==(const request_record&, const request_record&) = default;
};

/// What was asked and what was served: requests, or frames.
struct attained {
  double asked = 0;
  double credit = 0;
  /// Share of what was asked that was served.
  [[nodiscard]] double share() const { return asked > 0 ? credit / asked : 1; }
};

/// Requests of one service.
struct service_totals {
  std::array<std::uint64_t, request_outcomes> ended = {};
  double asked = 0;  ///< credit of all requests, had they been served: 1 each, or their frames
  double credit = 0;
  latency_histogram latency;  ///< of those served or late, from arrival to answer

  [[nodiscard]] std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto n : ended) sum += n;
    return sum;
  }
  [[nodiscard]] std::uint64_t operator[](request_outcome o) const { return ended[static_cast<std::size_t>(o)]; }
  /// Share of what was asked that was served.
  [[nodiscard]] double attainment() const { return attained{asked, credit}.share(); }
  friend bool operator==(const service_totals&, const service_totals&) = default;
};

struct server_totals {
  std::uint64_t entered = 0;
  std::uint64_t passed_on = 0;
  double credit = 0;  ///< of requests that it was the last to handle
  std::uint64_t ended = 0;
  friend bool operator==(const server_totals&, const server_totals&) = default;
};

/// Requests that went from one server to another.
struct offload_flow {
  server_id from;
  server_id to;
  std::uint64_t requests = 0;
  friend bool operator==(const offload_flow&, const offload_flow&) = default;
};

/// Servers up to which a history holds how many requests waited where.
inline constexpr std::size_t most_detailed = 1000;

/// What became of a stream of requests.
///
/// Shapes  goodput: bins x services (credit of requests that ended then); offered: bins x services (credit of requests that arrived then,
/// had they been served); credit_by_server: servers x services (of requests that the server was the last to handle); waiting: bins x
/// servers (requests that waited on instances that the server leads, at the first publication of the bin). The last two are empty for
/// clouds of more than most_detailed servers. Units: SI.
/// Source  EPARA, eq. 2; semantics, section 11 (what counts).
struct service_history {
  status result;     ///< stopped where an observer said so, or after most_periods: then totals are of the requests that have ended
  seconds begin;     ///< the first arrival: bins and the duration count from then
  seconds duration;  ///< to the last arrival, or the last end with a credit if that is later
  seconds bin;       ///< width of a bin of time; the last one holds all that is later
  std::vector<service_totals> services;
  std::vector<server_totals> servers;
  std::vector<std::vector<double>> goodput;
  std::vector<std::vector<double>> offered;
  std::vector<std::vector<double>> credit_by_server;
  std::vector<std::vector<std::uint32_t>> waiting;
  std::vector<std::uint64_t> offloads;  ///< [h]: requests that had been passed on h times when they ended
  std::vector<offload_flow> flows;      ///< by from, then to
  std::uint64_t events = 0;             ///< arrivals, hand-overs and publications that were played
  std::uint64_t publications = 0;
  std::uint64_t changes = 0;            ///< of the deployment
  std::vector<request_record> records;  ///< by number of the request, where asked for

  [[nodiscard]] std::uint64_t requests() const;
  [[nodiscard]] double credit() const;
  /// Share of what was asked that was served.
  [[nodiscard]] double attainment() const;
  /// Of the services whose requests are to be answered within a latency (in requests), or of the streams (in frames).
  [[nodiscard]] attained attained_by(const std::vector<service>& services, bool streams) const;
  /// Requests (frames of streams) a second that were served within their SLO: eq. 2 adds both.
  [[nodiscard]] double goodput_per_s() const { return duration.value() > 0 ? credit() / duration.value() : 0; }
  [[nodiscard]] double mean_offloads() const;
  [[nodiscard]] std::uint64_t count(request_outcome o) const;
};

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/service_history.ipp>
#endif
