// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/coarsen/compute_scores.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::coarsen {

namespace detail {

[[nodiscard]] HETPLAN_INLINE std::string name_of(const device& d) { return "device " + std::to_string(d.id.value) + " \"" + d.name + "\""; }

[[nodiscard]] HETPLAN_INLINE double require_time(double t_s, const std::string& what, const device& d) {
  if (t_s > 0) return t_s;
  throw invalid_input("compute_scores: " + what + " takes " + to_text(t_s) + " s on " + name_of(d) + "; expected > 0");
}

}  // namespace detail

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost,
                                                  std::span<const benchmark> benchmarks) {
  double weights = 0;
  for (std::size_t i = 0; i < benchmarks.size(); ++i) {
    const double w = benchmarks[i].weight;
    if (!(w >= 0) || !std::isfinite(w))
      throw invalid_input("compute_scores: weight of benchmark " + std::to_string(i) + " = " + to_text(w) + "; expected finite >= 0");
    weights += w;
  }
  if (!(weights > 0)) throw invalid_input("compute_scores: expected a benchmark with a weight > 0, got none");
  std::vector<double> scores;
  for (const device& d : devices) {
    double score = 0;
    for (std::size_t i = 0; i < benchmarks.size(); ++i) {
      if (benchmarks[i].weight == 0) continue;
      double t_s = 0;
      for (const work& w : benchmarks[i].calls) t_s += checked_time_s(cost, w, d);
      score += benchmarks[i].weight / detail::require_time(t_s, "benchmark " + std::to_string(i), d);
    }
    scores.push_back(score);
  }
  return scores;
}

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices, const any_cost_model& cost, const planning_graph& model,
                                                  mode mode, double batch) {
  if (!(batch > 0) || !std::isfinite(batch)) throw invalid_input("compute_scores: batch = " + to_text(batch) + "; expected finite > 0");
  std::vector<layer_id> layers;
  for (const layer& l : model.layers()) layers.push_back(l.id);
  std::vector<phase> phases{phase::forward};
  if (mode == mode::training) phases.insert(phases.end(), {phase::backward_input, phase::backward_weight});
  std::vector<double> scores;
  for (const device& d : devices) {
    double t_s = 0;
    for (const phase p : phases) t_s = cost.total_s(model, layers, {p, batch}, d, t_s);
    scores.push_back(batch / detail::require_time(t_s, "model \"" + model.name() + "\"", d));
  }
  return scores;
}

HETPLAN_INLINE std::vector<double> compute_scores(std::span<const device> devices) {
  std::vector<double> scores;
  for (const device& d : devices) {
    if (!(d.compute.value() > 0))
      throw invalid_input("compute_scores: compute of " + detail::name_of(d) + " is not known; expected a model with a profile of it");
    scores.push_back(d.compute.value());
  }
  return scores;
}

}  // namespace hetplan::coarsen
