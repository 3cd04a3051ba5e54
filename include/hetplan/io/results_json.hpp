// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Sweep files, and the results that commands print with --json.

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
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/recipes/largest.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/size_for.hpp>
#include <hetplan/simulate/explain.hpp>

namespace hetplan::io {

inline constexpr std::string_view serving_sweep_format = "hetplan/serving-sweep/1";

namespace keys {
inline constexpr std::array<std::string_view, 9> serving_sweep{"format", "clouds",  "services",      "requests",  "faults",
                                                               "cycles", "systems", "trace_service", "time_scale"};
}  // namespace keys

/// A sweep over all combinations of clouds, services, requests, cycles and serving systems.
struct serving_sweep {
  std::vector<std::string> clouds, services, requests;  ///< files
  std::string faults = {};                              ///< a file; "": no faults
  std::vector<seconds> cycles = {};                     ///< between placements; 0 or an empty list: one placement only
  std::vector<std::string> systems = {};                ///< empty: all
  std::string trace_service = {};                       ///< service of the traces among the requests; "": determined by the trace
  std::optional<double> time_scale = {};                ///< factor on the times of traces
};

/// Reads a serving sweep file. The files that it names are not opened.
///
/// @param systems  the allowed names of systems.
/// Throws          invalid_input `FILE: /pointer: expected X, got Y`.
/// Source          docs/reference/serving-files.md, hetplan/serving-sweep/1.
[[nodiscard]] serving_sweep read_serving_sweep(const json_document& d, std::span<const std::string> systems);

inline constexpr std::string_view sweep_format = "hetplan/sweep/1";

namespace keys {
inline constexpr std::array<std::string_view, 9> sweep{"format",   "models", "clusters", "jobs",   "latencies",
                                                       "planners", "tokens", "dtype",    "weights"};
}  // namespace keys

/// A job of a sweep: a file, or given inline under a name.
struct sweep_job {
  std::string name;                      ///< file name, or the name of an inline job
  std::optional<hetplan::job> job = {};  ///< none: in the file
};

/// A sweep over all combinations of models, clusters, jobs, latencies and planners.
struct sweep {
  std::vector<std::string> models, clusters;  ///< files or built-in names
  std::vector<sweep_job> jobs;
  std::vector<seconds> latencies = {};     ///< each replaces the jobs' qoe.latency; empty: the jobs' own
  std::vector<std::string> planners = {};  ///< empty: all
  std::optional<int> tokens = {};          ///< of built-in models
  std::string dtype = {};                  ///< of built-in models; "": their own
  std::string weights = {};                ///< format of built-in language models' weights; "": their own
};

namespace detail {
/// Returns the distinct strings of a list. Throws invalid_input for a duplicate.
[[nodiscard]] std::vector<std::string> read_names(const json_node& list, std::string_view expected);
}  // namespace detail

/// Reads a sweep file. The files that it names are not opened.
///
/// @param planners  the allowed names of planners.
/// Throws           invalid_input `FILE: /pointer: expected X, got Y` for what docs/reference/files.md calls bad input.
/// Source           docs/reference/files.md, hetplan/sweep/1.
[[nodiscard]] sweep read_sweep(const json_document& d, std::span<const std::string> planners);

/// Returns the output of `groups --json`: regions and their classes by name; names, scores and rows of distances by device in the cluster's
/// order (null if no route joins two devices); the merge tree.
[[nodiscard]] std::string write_groups(const coarsen::device_groups& g, const cluster& c);

struct adapt_results_options {
  std::size_t max_stretches = 10'000;  ///< per policy; stretches beyond the limit are all left out
};

/// Returns the output of `adapt --json`: an object per policy, in the given order, with the keys in docs/reference/files.md.
///
/// @param rows  valid histories of this cluster: finite numbers, plans of `model`.
[[nodiscard]] std::string write_histories(std::span<const policy_history> rows, const planning_graph& model, const cluster& c,
                                          const adapt_results_options& options = {});

/// Returns the output of `serve --json`: a history without its records.
[[nodiscard]] std::string write_history(const serve::service_history& h, const serve::edge_cloud& cloud,
                                        const std::vector<serve::service>& services);

/// Returns the answer of `serve --size-for` as JSON: target, status, and the sizes tried.
[[nodiscard]] std::string write_sizing(const serve::sizing& s, double target);

/// Returns the output of `simulate --json`. Unused devices are left out, resources are not; broken limits are added.
///
/// @param explained  of the same run; null: without "memory" and "limits".
[[nodiscard]] std::string write_evaluation(const evaluation& e, const cluster& c, const run_explanation* explained = nullptr);

/// Returns the output of `plan --json`.
///
/// @param explained  of the best plan; null: without "run".
/// @param largest    what was found with the plans; null: without "largest".
[[nodiscard]] std::string write_plan_result(const plan_result& r, const planning_graph& model, const cluster& c,
                                            const run_explanation* explained = nullptr, const recipes::largest_found* largest = nullptr);

/// Result of one planner in `compare`: its best plan, or the nearest miss, or none.
struct comparison_row {
  std::string planner;
  hetplan::status status = {};
  std::optional<ranked_plan> best = {};
  seconds elapsed = {};
  std::optional<limit_kind> broken = {};  ///< binding limit if there is no plan; memory gives "out_of_memory"
};

/// Returns the output of `compare --json`. Missing values are left out.
[[nodiscard]] std::string write_comparison(std::span<const comparison_row> rows, const planning_graph& model, const cluster& c);

}  // namespace hetplan::io

#ifndef HETPLAN_SEPARATE
#include <hetplan/io/results_json.ipp>
#endif
