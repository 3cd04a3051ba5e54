// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Edge clouds as files: hetplan/cloud/1.

#include <array>
#include <string>
#include <string_view>

#include <hetplan/io/json_document.hpp>
#include <hetplan/serve/edge_cloud.hpp>

namespace hetplan::io {

inline constexpr std::string_view cloud_format = "hetplan/cloud/1";

/// The most servers of a cloud file, and GPUs of a server.
inline constexpr int max_servers = 1'000'000;
inline constexpr int max_gpus_per_server = 1024;

namespace keys {
inline constexpr std::array<std::string_view, 5> cloud{"format", "name", "servers", "ring", "load_bandwidth"};
inline constexpr std::array<std::string_view, 3> ring{"period", "group", "max_age"};
inline constexpr std::array<std::string_view, 8> server{"name",     "count",   "gpus",           "uplink",
                                                        "downlink", "latency", "load_bandwidth", "devices"};
inline constexpr std::array<std::string_view, 3> gpu{"kind", "memory", "count"};
inline constexpr std::array<std::string_view, 5> registered_device{"name", "kind", "memory", "bandwidth", "latency"};
}  // namespace keys

/// Throws invalid_input `FILE: /pointer: expected X, got Y`.
[[nodiscard]] serve::edge_cloud read_cloud(const json_document& d);

/// What read_cloud reads back identically.
[[nodiscard]] std::string write_cloud(const serve::edge_cloud& c);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/cloud_json.ipp>
#endif
