// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what became of requests.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

// How long requests took, in bins that grow with the time.

/// Counts of times from a microsecond to twelve days, in bins 1/64 of an octave wide at most, and of each bin the longest.
/// Source  ours.
class latency_histogram {
 public:
  /// By which part a quantile may be above the exact one.
  static constexpr double resolution = 1.0 / 64;

  void add(double time_s) {
    if (bins_.empty()) bins_.resize(last_bin + 1);
    auto& in = bins_[bin(time_s)];
    ++in.count;
    in.longest_s = std::max(in.longest_s, time_s);
    ++count_;
    sum_s_ += time_s;
    largest_s_ = std::max(largest_s_, time_s);
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] seconds mean() const { return seconds(count_ == 0 ? 0 : sum_s_ / static_cast<double>(count_)); }
  [[nodiscard]] seconds largest() const { return seconds(largest_s_); }

  /// The least of the times that as many as this part are at most as long as, or one above it by no more than `resolution`: the longest
  /// of its bin. 0 without a time. Requires 0 <= q <= 1.
  [[nodiscard]] seconds quantile(double q) const {
    auto left = q * static_cast<double>(count_);
    for (const auto& b : bins_) {
      left -= static_cast<double>(b.count);
      if (b.count > 0 && left <= relative_tolerance * static_cast<double>(count_)) return seconds(b.longest_s);
    }
    return seconds(largest_s_);
  }

  /// How many took at most that long; of the bin that holds the time, the part below it. Requires time >= 0.
  [[nodiscard]] double count_within(seconds time) const {
    if (at_most(largest_s_, time.value())) return static_cast<double>(count_);
    const auto last = bin(time.value());
    double sum = 0;
    for (std::size_t b = 0; b < last; ++b) sum += static_cast<double>(bins_[b].count);
    const double from = last == 0 ? 0 : edge(last);
    return sum + static_cast<double>(bins_[last].count) * std::min(1.0, (time.value() - from) / (edge(last + 1) - from));
  }
  friend bool operator==(const latency_histogram&, const latency_histogram&) = default;

 private:
  static constexpr int steps_log2 = 6;
  static constexpr std::uint64_t first_bits = std::bit_cast<std::uint64_t>(0x1p-20) >> (52 - steps_log2);
  static constexpr std::size_t last_bin = std::size_t{41} << steps_log2;

  /// The number that sign, exponent and the first bits of the fraction spell: it grows with the time. An edge, but for rounding, is the
  /// end of the bin below it: whoever is answered when an SLO is over is in time.
  [[nodiscard]] static std::size_t bin(double time_s) {
    time_s *= 1 - relative_tolerance;
    if (!(time_s >= 0x1p-20)) return 0;
    return std::min<std::size_t>(last_bin, (std::bit_cast<std::uint64_t>(time_s) >> (52 - steps_log2)) - first_bits);
  }
  [[nodiscard]] static double edge(std::size_t b) { return std::bit_cast<double>((first_bits + b) << (52 - steps_log2)); }

  struct times {
    std::uint64_t count = 0;
    double longest_s = 0;
    friend bool operator==(const times&, const times&) = default;
  };
  std::vector<times> bins_;
  std::uint64_t count_ = 0;
  double sum_s_ = 0;
  double largest_s_ = 0;
};

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/service_history.ipp>
#endif
