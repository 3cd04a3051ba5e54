// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Latency estimates of planners that add up steps more simply than the dominant step: what Alpa and PipeDream minimise.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/plan/estimators.hpp>

namespace HETPLAN_NAMESPACE {

/// Which estimate a search minimises. Each is also an estimator of whole plans.
enum class latency_rule {
  dominant_step,    ///< hetplan::dominant_step
  sum_and_largest,  ///< hetplan::sum_and_largest
  largest_step      ///< hetplan::largest_step
};

/// T = sum_i e_i + (M - 1) max_i e_i over the steps, links among them: fill once, then wait for the slowest. A stage's
/// collective A is spread over the microbatches, e + A / M. On a DAG of stages the sum runs along the longest way.
///
/// Complexity  O(stages + links).
/// Source      Alpa (Zheng et al., 2022), section 5.1, eq. 2: its latency of a pipeline; Metis takes the same. Deviation:
///             links are steps.
struct sum_and_largest {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    std::vector<double> way(steps.stages.size());
    double largest = 0, longest = 0;
    for (std::size_t h = way.size(); h-- > 0;) {
      const auto& stage = steps.stages[h];
      const double step = stage.total_s + stage.collective_s / steps.microbatches;
      largest = std::max(largest, step);
      for (const std::size_t l : stage.out) {
        largest = std::max(largest, steps.links[l].total_s);
        way[h] = std::max(way[h], steps.links[l].total_s + way[steps.links[l].to]);
      }
      way[h] += step;
      longest = std::max(longest, way[h]);
    }
    return seconds(longest + (steps.microbatches - 1) * largest);
  }
};

/// T = the largest of all stages' work, collectives and links' traffic of an iteration: a pipeline that never fills or
/// drains, whose reductions hide behind work.
///
/// Complexity  O(stages + links).
/// Source      PipeDream (Narayanan et al., 2019), section 3.1: the slowest stage of its optimizer, where synchronisation
///             overlaps with computation.
struct largest_step {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    double largest = 0;
    for (const auto& s : steps.stages) largest = std::max({largest, steps.microbatches * s.total_s, s.collective_s});
    for (const auto& l : steps.links) largest = std::max(largest, l.own_s);
    return seconds(largest);
  }
};

static_assert(check_latency_estimator<sum_and_largest>() && check_latency_estimator<largest_step>());

}  // namespace HETPLAN_NAMESPACE
