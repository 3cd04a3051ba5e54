// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests as text: a line each, under a header that names the columns.

#include <string>
#include <string_view>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>
#include <hetplan/serve/service_history.hpp>

namespace hetplan::io {

/// The largest file of requests: 4 GB.
inline constexpr std::size_t max_requests_bytes = 4'000'000'000;

/// Reads columns arrival, service, server and, where there are any, tokens_in, tokens_out and frames; what is empty or left out is the
/// service's typical number, rounded, at least 1.
/// Throws  invalid_input `FILE: line N: expected X, got Y`: a column that is missing, unknown or twice, a line with more or fewer fields, a
///         number that is none or of no use to the service, a name that is not known, arrivals that descend, no requests.
[[nodiscard]] serve::request_stream parse_requests(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                   const std::vector<serve::service>& services);
[[nodiscard]] serve::request_stream read_requests(const std::string& path, const serve::edge_cloud& cloud,
                                                  const std::vector<serve::service>& services);

/// What parse_requests reads back identically.
[[nodiscard]] std::string write_requests(const serve::request_stream& requests, const serve::edge_cloud& cloud,
                                         const std::vector<serve::service>& services);

/// Columns request, outcome, end, server, offloads and credit, a line for each request that has ended.
[[nodiscard]] std::string write_records(const std::vector<serve::request_record>& records, const serve::edge_cloud& cloud);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/requests_csv.ipp>
#endif
