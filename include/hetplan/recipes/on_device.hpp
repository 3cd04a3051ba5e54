// SPDX-License-Identifier: BSL-1.0
#pragma once
/// On-device: the whole model on one device, the best of them.

#include <hetplan/simulate/ranking.hpp>

namespace HETPLAN_NAMESPACE::recipes {

/// Every device alone with every microbatch size; no communication.
///
/// Source  the baseline "on-device" of Asteroid, section 5.1.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result on_device(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  ranking best(problem, objective, keep);
  const auto sizes = problem.job.candidate_microbatch_sizes();
  const auto total = static_cast<long long>(sizes.size() * problem.cluster.size());
  for (const device& d : problem.cluster.devices()) {
    for (const int size : sizes) {
      plan p = problem.blank("on-device", size);
      p.stages = {{.name = "s0", .layers = all_layers(problem.model), .devices = {{d.id, size}}}};
      if (best.consider(std::move(p), total, observers...) == flow::stop) return std::move(best).result();
    }
  }
  return std::move(best).result();
}

}  // namespace HETPLAN_NAMESPACE::recipes
