// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The step laws that ship as formulas over a whole plan: written from their definitions, not step by step from the end.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/estimate/pipeline_steps.hpp>

namespace hetplan::test {

/// One microbatch from each stage to the end [s], by the longest way.
[[nodiscard]] inline std::vector<double> ways_s(const pipeline_steps& steps) {
  std::vector<double> way(steps.stages.size());
  for (std::size_t h = way.size(); h-- > 0;) {
    double behind = 0;
    for (const std::size_t l : steps.stages[h].out) behind = std::max(behind, steps.links[l].total_s + way[steps.links[l].to]);
    way[h] = steps.stages[h].total_s + behind;
  }
  return way;
}

/// T of the dominant step, in each mode.
struct closed_dominant_step {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    const double M = steps.microbatches;
    const bool training = steps.mode == mode::training;
    const bool one_at_a_time = std::all_of(steps.stages.begin(), steps.stages.end(), [](const auto& s) { return s.in_flight == 1; });
    const double turns = training && one_at_a_time ? M : 1;
    const std::vector<double> way = ways_s(steps);
    std::vector<double> D(way.size()), R(way.size()), Z(way.size());
    double worst_D = 0, worst_R = 0, worst_Z = 0, busiest = 0;
    for (std::size_t h = way.size(); h-- > 0;) {
      const auto& stage = steps.stages[h];
      D[h] = M * stage.total_s;
      R[h] = stage.collective_s;
      Z[h] = M * stage.total_s + (way[h] - stage.total_s);
      busiest = std::max({busiest, M * stage.total_s, stage.in.empty() ? way[h] : 0});
      for (const std::size_t l : stage.out) {
        const auto& link = steps.links[l];
        D[h] = std::max(D[h], turns * stage.total_s + std::max(link.own_s, turns * link.total_s + D[link.to]));
        R[h] = std::max(R[h], R[link.to] - link.backward_s - stage.backward_s);
        Z[h] = std::max(Z[h], stage.total_s + std::max(link.own_s + way[link.to], link.total_s + Z[link.to]));
        busiest = std::max(busiest, link.own_s);
      }
      if (!stage.in.empty()) continue;
      worst_D = std::max(worst_D, D[h]);
      worst_R = std::max(worst_R, R[h]);
      worst_Z = std::max(worst_Z, Z[h]);
    }
    return seconds(training ? worst_D + worst_R : steps.mode == mode::inference ? worst_Z : busiest);
  }
};

struct closed_sum_and_largest {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    pipeline_steps spread = steps;
    double largest = 0;
    for (auto& s : spread.stages) largest = std::max(largest, s.total_s += s.collective_s / steps.microbatches);
    for (const auto& l : steps.links) largest = std::max(largest, l.total_s);
    const std::vector<double> way = ways_s(spread);
    return seconds(*std::max_element(way.begin(), way.end()) + (steps.microbatches - 1) * largest);
  }
};

struct closed_largest_step {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    double largest = 0;
    for (const auto& s : steps.stages) largest = std::max({largest, steps.microbatches * s.total_s, s.collective_s});
    for (const auto& l : steps.links) largest = std::max(largest, l.own_s);
    return seconds(largest);
  }
};

static_assert(check_latency_estimator<closed_dominant_step>() && check_latency_estimator<closed_sum_and_largest>() &&
              check_latency_estimator<closed_largest_step>());

}  // namespace hetplan::test
