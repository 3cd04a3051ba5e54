// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Requests from a file: ours, or another project's trace, whichever it is.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/exchange/replay_trace.hpp>
#include <hetplan/exchange/token_trace.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/service.hpp>

namespace HETPLAN_NAMESPACE::exchange {

struct requests_file {
  serve::request_stream requests;
  std::optional<trace_format> trace = {};  ///< none: the file says services and servers itself
  std::size_t skipped = 0;                 ///< of a trace: requests that failed
};

/// Reads requests (io::parse_requests) or a trace (parse_token_trace, replay_trace) by how the text begins; the options are for traces.
///
/// Throws  what these throw.
[[nodiscard]] requests_file parse_requests_file(std::string_view text, const std::string& file, const serve::edge_cloud& cloud,
                                                const std::vector<serve::service>& services, const replay_options& options = {});
[[nodiscard]] requests_file read_requests_file(const std::string& path, const serve::edge_cloud& cloud,
                                               const std::vector<serve::service>& services, const replay_options& options = {});

}  // namespace HETPLAN_NAMESPACE::exchange

#ifndef HETPLAN_COMPILED
#include <hetplan/exchange/requests_file.ipp>
#endif
