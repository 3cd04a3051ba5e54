// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/requests_file.hpp>

#include <hetplan/exchange/foreign_table.hpp>
#include <hetplan/io/file.hpp>
#include <hetplan/io/requests_csv.hpp>

namespace HETPLAN_NAMESPACE::exchange {

HETPLAN_INLINE requests_file parse_requests_file(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                 const std::vector<serve::service>& services, const replay_options& options) {
  require_text(text, file);
  const auto format = trace_format_of(text);
  if (!format) return {io::parse_requests(text, file, cloud, services)};
  const auto trace = parse_token_trace(text, file);
  return {replay_trace(trace, cloud, services, options), format, trace.skipped};
}

HETPLAN_INLINE requests_file read_requests_file(const std::string& path, const serve::edge_cloud& cloud,
                                                const std::vector<serve::service>& services, const replay_options& options) {
  return parse_requests_file(io::read_text(path, io::max_requests_bytes), path, cloud, services, options);
}

}  // namespace HETPLAN_NAMESPACE::exchange
