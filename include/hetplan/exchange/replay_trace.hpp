// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A recorded trace as requests to the services of an edge cloud.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/exchange/token_trace.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_process.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>

namespace HETPLAN_NAMESPACE::exchange {

struct replay_options {
  std::string service = "";  ///< that all are for; "": those called like the trace's models, or else the only one that generates
  double time_scale = 1;     ///< times arrivals: 0.5 plays twice as many a second
  std::optional<std::uint64_t> seed = {};  ///< draws the servers where requests enter; none: one after the other
};

/// The trace's requests, in its order.
///
/// Throws  invalid_input: a service that is not there or generates no tokens, services that may all be meant (named), a scale that is not
///         above 0 and finite, times beyond double, no server.
/// Source  EPARA, section 5.1, for numbers of tokens from Azure's trace. Dealing out its requests to servers is ours: EPARA's arrive as
///         another trace, of functions, has them.
[[nodiscard]] serve::request_stream replay_trace(const token_trace& trace, const serve::edge_cloud& cloud,
                                                 const std::vector<serve::service>& services, const replay_options& options = {});

/// What its requests ask for, for serve::request_process.
[[nodiscard]] std::vector<serve::request_length> lengths_of(const token_trace& trace);

}  // namespace HETPLAN_NAMESPACE::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/replay_trace.ipp>
#endif
