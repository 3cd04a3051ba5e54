// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `simulate`, `plan` and `compare` print with --json.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/coarsen/device_groups.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/io/timeline_json.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/service_history.hpp>
#include <hetplan/serve/size_for.hpp>

namespace hetplan::io {

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

#ifndef HETPLAN_COMPILED
#include <hetplan/io/results_json.ipp>
#endif
