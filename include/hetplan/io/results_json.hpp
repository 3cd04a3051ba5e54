// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `simulate`, `plan` and `compare` print with --json.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/job_json.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/size_for.hpp>

namespace hetplan::io {

// What-if sweeps as files: hetplan/sweep/1.

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

// What `groups` prints with --json.

/// Regions and their classes by names; then by device, in the cluster's order, names, scores and a row of distances (null where nothing
/// joins two devices); and the merge tree.
[[nodiscard]] std::string write_groups(const coarsen::device_groups& g, const cluster& c);

// What `adapt` prints with --json.

struct adapt_results_options {
  std::size_t max_stretches = 10'000;  ///< of one policy; where more are left, none is written
};

/// `adapt --json`: an object per policy, in the order given; docs/reference/files.md lists the keys.
///
/// @param rows  valid histories of this cluster: finite numbers, plans of `model`.
[[nodiscard]] std::string write_histories(std::span<const policy_history> rows, const planning_graph& model, const cluster& c,
                                          const adapt_results_options& options = {});

// What `serve` prints with --json.

/// A history without its records.
[[nodiscard]] std::string write_history(const serve::service_history& h, const serve::edge_cloud& cloud,
                                        const std::vector<serve::service>& services);

/// The answer of --size-for: target, status, and what was tried.
[[nodiscard]] std::string write_sizing(const serve::sizing& s, double target);

/// `simulate --json`: devices that the plan leaves alone are left out, resources are all listed; limits where some are broken.
[[nodiscard]] std::string write_evaluation(const evaluation& e, const cluster& c);

/// `plan --json`.
[[nodiscard]] std::string write_plan_result(const plan_result& r, const planning_graph& model, const cluster& c);

/// One planner's row of `compare`: its best plan with its prediction, or the nearest miss, or none.
struct comparison_row {
  std::string planner;
  hetplan::status status = {};
  std::optional<plan> best = {};
  seconds elapsed = {};
  std::optional<limit_kind> broken = {};  ///< without a plan: the limit that binds; memory makes it "out_of_memory"
};

/// `compare --json`; what a row does not have is left out.
[[nodiscard]] std::string write_comparison(std::span<const comparison_row> rows, const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/results_json.ipp>
#endif
