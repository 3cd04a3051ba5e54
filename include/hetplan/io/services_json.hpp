// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Services and their times as files: hetplan/services/1.

#include <array>
#include <string_view>
#include <vector>

#include <hetplan/io/json_document.hpp>
#include <hetplan/serve/service.hpp>
#include <hetplan/serve/service_time_table.hpp>

namespace hetplan::io {

inline constexpr std::string_view services_format = "hetplan/services/1";

namespace keys {
inline constexpr std::array<std::string_view, 2> services{"format", "services"};
inline constexpr std::array<std::string_view, 12> service{"name",          "latency",        "frame_latency",   "rate",
                                                          "request_bytes", "response_bytes", "bytes_per_token", "tokens",
                                                          "frames",        "weights",        "batching",        "variants"};
inline constexpr std::array<std::string_view, 2> token_counts{"in", "out"};
inline constexpr std::array<std::string_view, 9> variant{
    "name", "gpu", "tensor_parallel", "pipeline_parallel", "compute", "memory", "across_servers", "pass", "step"};
inline constexpr std::array<std::string_view, 3> pass{"batch", "seconds", "per_token"};
inline constexpr std::array<std::string_view, 2> step{"batch", "seconds"};
}  // namespace keys

/// Services, and the times that the file has for their variants.
struct services_file {
  std::vector<serve::service> services;
  serve::service_time_table times;
};

/// Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] services_file read_services(const json_document& d);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/services_json.ipp>
#endif
