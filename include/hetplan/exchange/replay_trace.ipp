// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/replay_trace.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/text.hpp>
#include <hetplan/serve/draw.hpp>

namespace HETPLAN_NAMESPACE::exchange {

namespace detail {

/// The services of a trace's models, in their order; where it names none, of all.
[[nodiscard]] HETPLAN_INLINE std::vector<serve::service_id> services_of(const token_trace& trace,
                                                                        const std::vector<serve::service>& services,
                                                                        const std::string& wanted) {
  std::vector<std::string_view> generating;
  for (const auto& s : services)
    if (s.generates) generating.push_back(s.name);
  const auto find = [&](std::string_view name) {
    const auto at = std::ranges::find_if(services, [&](const serve::service& s) { return s.generates && s.name == name; });
    return at == services.end() ? serve::service_id() : serve::service_id(at - services.begin());
  };
  const std::string choices = generating.empty() ? "there is none" : "there are " + io::shortened(io::joined(generating), 200);
  if (!wanted.empty()) {
    if (!find(wanted).valid())
      io::detail::fail_file(trace.file, "expected the name of a service that generates tokens (" + choices + "), got " +
                                            io::in_quotes(wanted) + io::suggestion(wanted, generating));
    return {find(wanted)};
  }
  std::vector<serve::service_id> by_model;
  std::ranges::transform(trace.models, std::back_inserter(by_model), find);
  if (!by_model.empty() && std::ranges::all_of(by_model, &serve::service_id::valid)) return by_model;
  if (generating.size() != 1)
    io::detail::fail_file(trace.file, "expected a choice of the service that the trace is for: one that generates tokens, and " + choices);
  return {find(generating.front())};
}

}  // namespace detail

HETPLAN_INLINE serve::request_stream replay_trace(const token_trace& trace, const serve::edge_cloud& cloud,
                                                  const std::vector<serve::service>& services, const replay_options& options) {
  if (!std::isfinite(options.time_scale) || options.time_scale <= 0)
    io::detail::fail_file(trace.file, "expected a time scale > 0, got " + to_text(options.time_scale));
  if (cloud.size() == 0) io::detail::fail_file(trace.file, "expected a cloud with a server where requests enter, got none");
  if (!trace.arrivals.empty() && !std::isfinite(trace.arrivals.back().at_s * options.time_scale))
    io::detail::fail_file(trace.file, "expected a time scale with which the last arrival, " + to_text(trace.arrivals.back().at_s) +
                                          " s, is finite, got " + to_text(options.time_scale));
  const auto targets = detail::services_of(trace, services, options.service);
  std::vector<serve::request> all;
  all.reserve(trace.arrivals.size());
  for (const auto& a : trace.arrivals) {
    const std::size_t i = all.size();
    // The last turn is one that no handler draws.
    const auto server =
        options.seed ? static_cast<std::size_t>(serve::draw(*options.seed, i, 63) * static_cast<double>(cloud.size())) : i % cloud.size();
    const auto target = targets[targets.size() == 1 ? 0 : a.model];
    all.push_back({a.at_s * options.time_scale, target, serve::server_id(server), a.tokens_in, a.tokens_out});
  }
  return serve::request_stream(std::move(all));
}

HETPLAN_INLINE std::vector<serve::request_length> lengths_of(const token_trace& trace) {
  std::vector<serve::request_length> all;
  all.reserve(trace.arrivals.size());
  for (const auto& a : trace.arrivals) all.push_back({a.tokens_in, a.tokens_out});
  return all;
}

}  // namespace HETPLAN_NAMESPACE::exchange
