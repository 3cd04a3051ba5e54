// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What-if sweeps as files: hetplan/sweep/1.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::io {

// Sweeps over clouds, loads and serving systems as files: hetplan/serving-sweep/1.

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

inline constexpr std::string_view sweep_format = "hetplan/sweep/1";

namespace keys {
inline constexpr std::array<std::string_view, 8> sweep{"format", "models", "clusters", "jobs", "latencies", "planners", "tokens", "dtype"};
}  // namespace keys

/// A job of a sweep: a file, or spelled out under a name.
struct sweep_job {
  std::string name;                      ///< the file, or the name it is given
  std::optional<hetplan::job> job = {};  ///< none: it is in the file
};

/// Every model on every cluster for every job, under every latency that is asked for, by every planner.
struct sweep {
  std::vector<std::string> models, clusters;  ///< files or built-in names
  std::vector<sweep_job> jobs;
  std::vector<seconds> latencies = {};     ///< each replaces the jobs' qoe.latency; none: the jobs' own
  std::vector<std::string> planners = {};  ///< none: all
  std::optional<int> tokens = {};          ///< of built-in models
  std::string dtype = {};                  ///< of built-in models; "": their own
};

namespace detail {
/// Texts, each once.
[[nodiscard]] std::vector<std::string> read_names(const json_node& list, std::string_view expected);
}  // namespace detail

/// Reads a sweep file; the files that it names are not opened.
///
/// @param planners  the names that a planner may have.
/// Throws           invalid_input `FILE: /pointer: expected X, got Y` for whatever docs/reference/files.md calls bad input.
/// Source           docs/reference/files.md, hetplan/sweep/1.
[[nodiscard]] sweep read_sweep(const json_document& d, std::span<const std::string> planners);

}  // namespace hetplan::io

#ifndef HETPLAN_COMPILED
#include <hetplan/io/sweep_json.ipp>
#endif
