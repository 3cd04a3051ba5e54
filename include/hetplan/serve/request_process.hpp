// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Synthetic requests: how many a second enter where, and a stream of them that is a pure function of a seed.

#include <cstdint>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>

namespace hetplan::serve {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/request_process.ipp>
#endif
