// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Even split: a stage on every device, all of equal FLOP as far as memory allows. What an ablation starts from.

#include <vector>

#include <hetplan/plan/any_objective.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/recipes/pipeline.hpp>

namespace hetplan::recipes {

/// Consecutive layers, one stage per device in the cluster's order, so that the largest stage has as little forward FLOP as
/// possible. Sees neither
/// the devices' speeds nor the network.
///
/// @return     none found where no such cut fits, and where the model has fewer layers than the cluster devices.
/// Complexity  see detail::cut_chain.
/// Source      the partition that Dora's ablation (Fig 14) gives to its scheduler alone.
[[nodiscard]] inline plan_result even_split(const planning_problem& problem, const any_objective& objective, int keep = 10,
                                            const candidate_observer& observer = {}) {
  std::vector<double> before{0};  // FLOP of the layers before each one
  for (const layer& l : problem.model.layers()) before.push_back(before.back() + l.forward_flops.value());
  return detail::cut_chain(
      problem, objective, keep, "even-split", {detail::as_listed(problem.cluster)}, static_cast<int>(problem.cluster.size()),
      [&](const auto&, std::size_t first, std::size_t last, device_id, int) { return before[last] - before[first]; },
      [](double, device_id, device_id, int) { return 0.0; }, observer);
}

}  // namespace hetplan::recipes
