// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's view of cost: energy by device, and latency against energy of the plans that were kept.

#include <string>
#include <vector>

#include <hetplan/draw/report_timeline.hpp>

namespace hetplan::draw::detail {

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
