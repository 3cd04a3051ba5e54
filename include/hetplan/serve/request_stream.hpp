// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what users ask over time.

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <hetplan/core/prefetch.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

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

}  // namespace hetplan::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/request_stream.ipp>
#endif
