// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What `simulate`, `plan` and `compare` print with --json.

#include <optional>
#include <span>
#include <string>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::io {

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
