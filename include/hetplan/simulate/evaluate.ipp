// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/simulate/evaluate.hpp>

#include <algorithm>
#include <vector>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE seconds time_between_tokens(const plan& p, const planning_graph& model, const judgement& j) {
  const stage_graph stages = make_stage_graph(p, model);
  std::vector<double> first(static_cast<std::size_t>(p.microbatches), 0), last(first);
  for (std::size_t n = 0; n < j.graph.computes.size(); ++n) {
    const tasks::compute_task& t = j.graph.computes[n];
    if (!stages[t.stage].out.empty() || (t.step != 0 && t.step != p.workload.tokens - 1)) continue;
    auto& ends = t.step == 0 ? first : last;
    for (long long g = t.first_sample / p.microbatch_size; g * p.microbatch_size < t.last_sample; ++g) {
      ends[static_cast<std::size_t>(g)] = std::max(ends[static_cast<std::size_t>(g)], j.trace.computes[n].end_s);
    }
  }
  double worst = 0;
  for (std::size_t g = 0; g < first.size(); ++g) worst = std::max(worst, (last[g] - first[g]) / (p.workload.tokens - 1));
  return seconds(worst);
}

}  // namespace HETPLAN_NAMESPACE
