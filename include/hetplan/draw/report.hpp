// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Report of a planner's answer: a page with the plan, its simulated run, and the reasons for its latency.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/explain.hpp>

namespace hetplan::draw::detail {

/// A kept plan in the latency-energy plane.
struct candidate_point {
  std::size_t rank = 0;  ///< 0: the best by the objective
  double response_s = 0, energy_J = 0;
  bool dominated = false;
};

/// Returns the plans in the given order. A plan is dominated if another is no worse in both and better in one.
[[nodiscard]] std::vector<candidate_point> candidate_points(const std::vector<ranked_plan>& plans);

/// Returns a chart of the energy of one or more plans over their latency, with the Pareto front as a line and the best plan marked.
[[nodiscard]] std::string pareto_chart(const std::vector<ranked_plan>& plans, const cluster& devices);

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

struct report_options {
  std::size_t max_bars = 4000;                    ///< beyond, short tasks and transfers are averaged over pixels
  std::optional<run_explanation> explained = {};  ///< of the same run; none: no section on limits
};

/// Returns a self-contained HTML page, without further files, fonts or addresses. Its charts zoom together and have hover texts; without
/// JavaScript they are static. If there is no plan, the page says why.
///
/// @param result  plans best first; `result.plans.front()` is shown, with its bounds.
/// @param best    from evaluate or judge of that plan on this cluster, with simulator_options{.record = true}; unused without a plan.
/// Complexity     that of critical_chain and trace_view::resources; the page has about max_bars bars at most.
/// Determinism    same input, same bytes.
[[nodiscard]] std::string report_html(const plan_result& result, const planning_graph& model, const cluster& c, const judgement& best,
                                      const report_options& options = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/report.ipp>
#endif
