// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/fit_warmup.hpp>

#include <algorithm>

#include <hetplan/plan/limits.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_sums.hpp>

namespace hetplan {

HETPLAN_INLINE void fit_warmup(plan& p, const planning_graph& model, const cluster& c, const any_memory_model& memory) {
  if (p.workload.mode != mode::training || p.schedule.kind != schedule_kind::one_f_one_b) return;
  const stage_graph graph = make_stage_graph(p, model);
  p.schedule.warmup.assign(p.stages.size(), 1);
  for (const stage_id s : graph.topological) {
    int most = warmup_of(warmup_rule::hide_communication, graph[s].depth);
    for (std::size_t i = 0; i < p[s].devices.size(); ++i) {
      const assignment& a = p[s].devices[i];
      const std::size_t column = p[s].column_of(i);
      const double room = memory_limit_bytes(c[a.device]) - stage_static_bytes(memory, model, p[s], a, p.workload, p.microbatches, column);
      const share_memory kept = stage_share_memory(memory, model, p[s], a, p.workload, input_bytes(graph, s), column);
      if (kept.forward > 0) most = std::max(1, count_that_fits(room - kept.backward, kept.forward, most));
    }
    for (const std::size_t e : graph[s].in) {
      if (graph.edges[e].backward_cut.value() > 0) most = std::min(most, p.schedule.warmup[graph.edges[e].from.index()]);
    }
    p.schedule.warmup[s.index()] = most;
  }
}

HETPLAN_INLINE void drop_usual_warmup(plan& p, const planning_graph& model) {
  if (p.schedule.warmup.empty()) return;
  const stage_graph stages = make_stage_graph(p, model);
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const int usual = warmup_of(warmup_rule::hide_communication, stages.nodes[s].depth);
    if (std::min(p.schedule.warmup[s], p.microbatches) != std::min(usual, p.microbatches)) return;
  }
  p.schedule.warmup.clear();
}

}  // namespace hetplan
