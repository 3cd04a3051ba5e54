// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Even split: the layers in as many parts of equal FLOP as there are devices. What an ablation starts from.

#include <string>
#include <utility>
#include <vector>

#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/bottleneck_chain.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

/// For every microbatch size: one stage per device, in the cluster's order, of consecutive layers, so that the largest
/// stage has the fewest FLOP. Sees neither speeds nor memory nor the network; the simulator judges.
///
/// @return     infeasible where the parts do not fit, and where there are fewer layers than devices.
/// Complexity  O(N L^2) for L layers and N devices, and a simulation per microbatch size.
/// Source      the partition that Dora's ablation (section 5.5, Fig 14) schedules without its partitioner.
template <class Problem, objective Objective, observer<candidate_judged>... Observers>
[[nodiscard]] plan_result even_split(const Problem& problem, const Objective& objective, int keep = 10, Observers&&... observers) {
  const planning_graph& model = problem.model;
  const std::size_t parts = problem.cluster.size();
  ranking best(problem, objective, keep);
  std::vector<std::size_t> positions;
  std::vector<double> before{0};  // FLOP of the layers before each position
  for (const layer& l : model.layers()) {
    positions.push_back(l.id.index());
    before.push_back(before.back() + l.forward_flops.value());
  }
  const auto work = [&](std::size_t first, std::size_t last, std::size_t, int) { return before[last] - before[first]; };
  const auto cuts = partition::bottleneck_chain(positions, model.size(), parts, static_cast<int>(parts), work,
                                                [](std::size_t, std::size_t, std::size_t) { return 0.0; });
  const layer_sequence sequence = sequence_of(model);
  if (cuts.size() == parts && cuts.back().exists()) {
    const partition::chain_cut& cut = cuts.back();
    const auto sizes = problem.job.candidate_microbatch_sizes();
    for (const int size : sizes) {
      plan p = problem.blank("even-split", size);
      for (std::size_t i = 0; i < parts; ++i) {
        const std::size_t last = i + 1 < parts ? cut.first[i + 1] : model.size();
        p.stages.push_back({.name = "s" + std::to_string(i), .layers = sequence.layers_of(cut.first[i], last),
                            .devices = {{device_id(cut.device[i]), size}}});
      }
      if (best.consider(std::move(p), static_cast<long long>(sizes.size()), observers...) == flow::stop) break;
    }
  }
  return std::move(best).result();
}

}  // namespace hetplan::recipes
