// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sweeps over clouds, loads and serving systems as files: hetplan/serving-sweep/1.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

inline constexpr std::string_view serving_sweep_format = "hetplan/serving-sweep/1";

namespace keys {
inline constexpr std::array<std::string_view, 9> serving_sweep{"format", "clouds",  "services",      "requests",  "faults",
                                                               "cycles", "systems", "trace_service", "time_scale"};
}  // namespace keys

/// Every cloud with every list of services under every list of requests and cycle, by every system.
struct serving_sweep {
  std::vector<std::string> clouds, services, requests;  ///< files
  std::string faults = {};                              ///< a file; "": none
  std::vector<seconds> cycles = {};                     ///< between placements, 0: never again; none: never again
  std::vector<std::string> systems = {};                ///< none: all
  std::string trace_service = {};                       ///< that traces among the requests are for; "": where it need not be said
  std::optional<double> time_scale = {};                ///< by which times of traces are multiplied
};

/// Reads a sweep file; the files that it names are not opened.
///
/// @param systems  the names that a system may have.
/// Throws          invalid_input `FILE: /pointer: expected X, got Y`.
/// Source          docs/reference/serving-files.md, hetplan/serving-sweep/1.
[[nodiscard]] serving_sweep read_serving_sweep(const json_document& d, std::span<const std::string> systems);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/serving_sweep_json.ipp>
#endif
