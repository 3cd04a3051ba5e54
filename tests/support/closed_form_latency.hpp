// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The built-in step laws as closed formulas over a whole plan, independent of the recursion from the end.

#include <algorithm>
#include <limits>
#include <vector>

#include <hetplan/estimate/pipeline_steps.hpp>

namespace hetplan::test {

/// Returns the longest time [s] of one microbatch from each stage to the end.
[[nodiscard]] inline std::vector<double> ways_s(const pipeline_steps& steps) {
  std::vector<double> way(steps.stages.size());
  for (std::size_t h = way.size(); h-- > 0;) {
    double behind = 0;
    for (const std::size_t l : steps.stages[h].out) behind = std::max(behind, steps.links[l].total_s + way[steps.links[l].to]);
    way[h] = steps.stages[h].total_s + behind;
  }
  return way;
}

/// The same of one pass of a part of a run of generation.
[[nodiscard]] inline std::vector<double> ways_s(const pipeline_steps& steps, double pipeline_steps::stage_step::*of_stage,
                                                double pipeline_steps::link_step::*of_link) {
  std::vector<double> way(steps.stages.size());
  for (std::size_t h = way.size(); h-- > 0;) {
    double behind = 0;
    for (const std::size_t l : steps.stages[h].out) behind = std::max(behind, steps.links[l].*of_link + way[steps.links[l].to]);
    way[h] = steps.stages[h].*of_stage + behind;
  }
  return way;
}

/// Latency by the dominant step, in each mode.
struct closed_dominant_step {
  /// In generation every path from a source counts: its passes of the prompt one after the other through the slowest step, and a step as
  /// long as the slowest stage or link makes it.
  [[nodiscard]] run_times times(const pipeline_steps& steps) const {
    if (steps.mode != mode::generation || !steps.connected()) return latency(steps);
    const double M = steps.microbatches, K = steps.first_passes, G = steps.later_passes;
    const auto way = ways_s(steps, &pipeline_steps::stage_step::later_s, &pipeline_steps::link_step::later_s);
    const auto first = ways_s(steps, &pipeline_steps::stage_step::first_s, &pipeline_steps::link_step::first_s);
    double between = 0, ttft = 0;
    for (std::size_t h = way.size(); h-- > 0;) {
      between = std::max({between, M * steps.stages[h].later_s, steps.stages[h].in.empty() ? way[h] : 0});
      for (const std::size_t l : steps.stages[h].out) between = std::max(between, steps.links[l].later_own_s);
    }
    // Depth first over all paths: time before a step, then the step for all passes, then the longest way behind it.
    const auto follow = [&](const auto& self, std::size_t h, double before) -> void {
      const auto& s = steps.stages[h];
      ttft = std::max(ttft, before + M * K * s.first_s + first[h] - s.first_s);
      for (const std::size_t l : s.out) {
        const auto& c = steps.links[l];
        ttft = std::max(ttft, before + s.first_s + c.first_own_s + first[c.to]);
        self(self, c.to, before + s.first_s + c.first_s);
      }
    };
    for (std::size_t h = 0; h < steps.stages.size(); ++h) {
      if (!steps.stages[h].in.empty()) continue;
      follow(follow, h, 0);
      if (steps.chunks_in_flight > 0) ttft = std::max(ttft, K / std::min<double>(K, steps.chunks_in_flight) * first[h]);
    }
    const double all = G > 0 ? ttft + G * between : ttft;
    return {seconds(all), seconds(ttft), seconds(G > 0 ? between : all)};
  }
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
