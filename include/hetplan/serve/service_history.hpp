// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The history of a stream of requests: outcomes, latencies and goodput.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::serve {

/// Counts of times from a microsecond to twelve days, in bins at most 1/64 of an octave wide, with the longest time of each bin.
/// Source  ours.
class latency_histogram {
 public:
  /// The most by which a quantile exceeds the exact one, relatively.
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

  /// Returns the quantile, too high by at most `resolution`: the longest time of its bin. 0 without times. Requires 0 <= q <= 1.
  [[nodiscard]] seconds quantile(double q) const {
    auto left = q * static_cast<double>(count_);
    for (const auto& b : bins_) {
      left -= static_cast<double>(b.count);
      if (b.count > 0 && left <= relative_tolerance * static_cast<double>(count_)) return seconds(b.longest_s);
    }
    return seconds(largest_s_);
  }

  /// Returns how many times are at most this long, with the proportional part of the bin that holds the time. Requires time >= 0.
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

  /// Returns the bin: sign, exponent and the first bits of the fraction, which grow with the time. A time at an edge, up to rounding,
  /// belongs to the bin below: an answer at the end of its SLO is in time.
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

/// The outcome of a request; each has exactly one.
enum class request_outcome : std::uint8_t {
  served,             ///< within its SLO, or as a stream at its whole rate
  late,               ///< answered, but a limit is broken
  in_part,            ///< a stream below its whole rate
  timed_out,          ///< its SLO was over before it began
  too_many_offloads,  ///< no server could serve it, and it may be passed on no more
  no_resources,       ///< no known server could serve it
  lost,               ///< its server is absent
  failed,             ///< ended by a fault
};
inline constexpr std::size_t request_outcomes = 8;

[[nodiscard]] constexpr std::string_view to_string(request_outcome o) {
  constexpr std::array<std::string_view, request_outcomes> names = {"served",       "late", "in_part", "timed_out", "too_many_offloads",
                                                                    "no_resources", "lost", "failed"};
  return names[static_cast<std::size_t>(o)];
}

/// The record of a request, if requested. In a stopped run, a request that has not ended has no server.
struct request_record {
  request_outcome outcome = request_outcome::lost;
  double end_s = 0;       ///< on the clock of the requests
  server_id server = {};  ///< the last server that handled it
  int offloads = 0;
  double credit = 0;
  double ttft_s = -1;     ///< from arrival to the first token; negative without tokens or an answer
  double between_s = -1;  ///< mean from its first token to its last; negative for less than two
  [[nodiscard]] bool has_ended() const { return server.valid(); }
  friend bool operator==(const request_record&, const request_record&) = default;
};

/// What was asked and what was served, in requests or frames.
struct attained {
  double asked = 0;
  double credit = 0;
  /// Returns the served share.
  [[nodiscard]] double share() const { return asked > 0 ? credit / asked : 1; }
};

/// Answered requests by the limit that they broke; one may break several.
struct broken_limits {
  std::uint64_t latency = 0;
  std::uint64_t ttft = 0;
  std::uint64_t time_between_tokens = 0;
  friend bool operator==(const broken_limits&, const broken_limits&) = default;
};

/// Totals of the requests of one service.
struct service_totals {
  std::array<std::uint64_t, request_outcomes> ended = {};
  double asked = 0;  ///< credit if all requests had been served: 1 each, or their frames
  double credit = 0;
  latency_histogram latency;              ///< of served and late requests, from arrival to answer
  latency_histogram ttft;                 ///< of those with tokens, to the first one
  latency_histogram time_between_tokens;  ///< of those with two tokens or more, each with its mean
  broken_limits broke;

  [[nodiscard]] std::uint64_t requests() const {
    std::uint64_t sum = 0;
    for (const auto n : ended) sum += n;
    return sum;
  }
  [[nodiscard]] std::uint64_t operator[](request_outcome o) const { return ended[static_cast<std::size_t>(o)]; }
  /// Returns the served share.
  [[nodiscard]] double attainment() const { return attained{asked, credit}.share(); }
  friend bool operator==(const service_totals&, const service_totals&) = default;
};

struct server_totals {
  std::uint64_t entered = 0;
  std::uint64_t passed_on = 0;
  double credit = 0;  ///< of requests that it handled last
  std::uint64_t ended = 0;
  friend bool operator==(const server_totals&, const server_totals&) = default;
};

/// Requests passed from one server to another.
struct offload_flow {
  server_id from;
  server_id to;
  std::uint64_t requests = 0;
  friend bool operator==(const offload_flow&, const offload_flow&) = default;
};

/// The largest cloud whose history has credit_by_server and waiting.
inline constexpr std::size_t most_detailed = 1000;

/// The history of a stream of requests.
///
/// Shapes  goodput: bins x services (credit of requests that ended then); offered: bins x services (credit of requests that arrived then,
///         if served); credit_by_server: servers x services (of requests that the server handled last); waiting: bins x servers (requests
///         waiting on instances that the server leads, at the first publication of the bin). The last two are empty for clouds of more
///         than most_detailed servers. Units: SI.
/// Source  EPARA, eq. 2; semantics, section 11 (what counts).
struct service_history {
  status result;     ///< stopped: by an observer or after most_periods; totals are then of the requests that have ended
  seconds begin;     ///< the first arrival, from which bins and the duration count
  seconds duration;  ///< to the last arrival, or to the last end with a credit if later
  seconds bin;       ///< bin width; the last bin holds everything later
  std::vector<service_totals> services;
  std::vector<server_totals> servers;
  std::vector<std::vector<double>> goodput;
  std::vector<std::vector<double>> offered;
  std::vector<std::vector<double>> credit_by_server;
  std::vector<std::vector<std::uint32_t>> waiting;
  std::vector<std::uint64_t> offloads;  ///< [h]: ended requests that had been passed on h times
  std::vector<offload_flow> flows;      ///< by from, then to
  std::uint64_t events = 0;             ///< arrivals, hand-overs and publications
  std::uint64_t publications = 0;
  std::uint64_t changes = 0;            ///< of the deployment
  std::vector<request_record> records;  ///< by number of the request, if requested

  [[nodiscard]] std::uint64_t requests() const { return sum(std::uint64_t{0}, &service_totals::requests); }
  [[nodiscard]] double credit() const { return sum(0.0, &service_totals::credit); }
  /// Returns the served share.
  [[nodiscard]] double attainment() const { return attained{sum(0.0, &service_totals::asked), credit()}.share(); }
  /// Returns the totals of services within a latency (in requests), or of streams (in frames).
  [[nodiscard]] attained attained_by(const std::vector<service>& all, bool streams) const {
    attained of_them;
    for (std::size_t l = 0; l < all.size(); ++l) {
      if (all[l].is_stream() != streams) continue;
      of_them.asked += services[l].asked;
      of_them.credit += services[l].credit;
    }
    return of_them;
  }
  /// Returns the requests (frames of streams) per second served within their SLO: eq. 2 adds both.
  [[nodiscard]] double goodput_per_s() const { return duration.value() > 0 ? credit() / duration.value() : 0; }
  [[nodiscard]] double mean_offloads() const {
    double hops = 0;
    double requests = 0;
    for (std::size_t h = 0; h < offloads.size(); ++h) {
      hops += static_cast<double>(h) * static_cast<double>(offloads[h]);
      requests += static_cast<double>(offloads[h]);
    }
    return requests > 0 ? hops / requests : 0;
  }
  [[nodiscard]] std::uint64_t count(request_outcome o) const {
    return sum(std::uint64_t{0}, [o](const service_totals& s) { return s[o]; });
  }

 private:
  template <class T, class Of>
  [[nodiscard]] T sum(T all, Of of) const {
    for (const auto& s : services) all += std::invoke(of, s);
    return all;
  }
};

}  // namespace hetplan::serve
