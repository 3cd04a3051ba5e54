// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report of a planner's answer: one page that shows the plan, what happened when it ran, and why it took so long.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/core/quantity.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::draw::detail {

/// A plan that was kept, and its place among the others.
struct candidate_point {
  std::size_t rank = 0;  ///< 0 is the best by the objective
  double response_s = 0, energy_J = 0;
  bool dominated = false;
};

/// Plans with a prediction, in the order given. A plan is dominated if another is no worse in both and better in one.
[[nodiscard]] std::vector<candidate_point> candidate_points(const std::vector<plan>& plans);

/// Latency against energy; the front is joined, the best marked.
[[nodiscard]] std::string pareto_chart(const std::vector<plan>& plans, const cluster& devices);

}  // namespace hetplan::draw::detail

namespace hetplan::draw {

struct report_options {
  std::size_t max_bars = 4000;  ///< with more, short tasks and transfers are averaged over pixels
};

/// One self-contained HTML page: no file, font or address beside it. Its charts zoom together and explain
/// themselves under the pointer; without JavaScript they stand still. Where there is no plan the page says why.
///
/// @param result  plans best first, each predicted; `result.plans.front()` is shown.
/// @param best    from evaluate or judge of that plan on this cluster, with simulator_options{.record = true}; read
///                only where there is a plan. Bounds are those of the plan's prediction, if it has one.
/// Complexity     that of critical_chain and trace_view::resources; the page has at most max_bars bars or so.
/// Determinism    same input, same bytes.
[[nodiscard]] std::string report_html(const plan_result& result, const planning_graph& model, const cluster& c, const judgement& best,
                                      const report_options& options = {});

}  // namespace hetplan::draw

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/report.ipp>
#endif
