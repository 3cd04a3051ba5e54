// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's view of cost: energy by device, and latency against energy of the plans that were kept.

#include <string>
#include <vector>

#include <hetplan/draw/report_timeline.hpp>
#include <hetplan/draw/svg.hpp>
#include <hetplan/graph/planning_graph.hpp>

namespace hetplan::draw::detail {

// The report's tables: the stages of the plan, and the critical path in words.

[[nodiscard]] std::string cell(std::string_view text, std::string_view more = "");

/// A bar of a share of a whole, crimson beyond it; the text says it in numbers.
[[nodiscard]] std::string meter(double share, bool alarm, std::string_view text);

/// Stage, layers, and by device: samples, accelerators, memory against its limit, busy share.
[[nodiscard]] std::string plan_table(const report_run& run, const planning_graph& model);

/// The critical path: where its seconds went in total, then link by link with what each waited for.
[[nodiscard]] std::string critical_section(const report_run& run);

/// Energy by used device, split as linear_power splits it where that is the model that charged it.
[[nodiscard]] std::string energy_chart(const report_run& run, const evaluation& e);

/// One plan that was kept: where it stands among the others.
struct candidate_point {
  std::size_t rank = 0;  ///< 0 is the best by the objective
  double response_s = 0, energy_J = 0;
  bool dominated = false;
};

/// Plans with a prediction, in the order given. Dominated: another is no worse in both and better in one.
[[nodiscard]] std::vector<candidate_point> candidate_points(const std::vector<plan>& plans);

/// Latency against energy; the front is joined, the best marked.
[[nodiscard]] std::string pareto_chart(const std::vector<plan>& plans, const cluster& devices);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_candidates.ipp>
#endif
