// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/staged.hpp>

#include <hetplan/plan/validate.hpp>

namespace HETPLAN_NAMESPACE {

HETPLAN_INLINE staged::staged(const planning_problem& problem, const hetplan::plan& p)
    : staged(p, problem.model, problem.cluster, problem.cost, problem.models.memory) {}

HETPLAN_INLINE staged::staged(const hetplan::plan& p, const planning_graph& m, const hetplan::cluster& c, const any_cost_model& cost,
                              const any_memory_model& memory)
    : plan(p), model(m), cluster(c), graph(require_valid(p, m, c)), static_bytes(hetplan::static_bytes(p, m, memory, c.size())) {
  stages.resize(p.stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const stage& s = p.stages[i];
    const double inputs = input_bytes(graph, stage_id(i));
    if (training() && s.devices.size() > 1) stages[i].trainable_bytes = trainable_bytes(m, s);
    for (const assignment& a : s.devices) {
      const device& d = c[a.device];
      const auto time_s = [&](phase what) { return stage_time_s(cost, m, s, a, d, what, p.workload.context); };
      part mine{.forward_s = time_s(phase::forward), .kept = stage_share_memory(memory, m, s, a, p.workload, inputs)};
      if (training()) {
        mine.backward_input_s = time_s(phase::backward_input);
        mine.backward_weight_s = time_s(phase::backward_weight);
        mine.optimizer_s = stage_optimizer_s(cost, m, s, d);
      }
      stages[i].devices.push_back(mine);
    }
  }
}

}  // namespace HETPLAN_NAMESPACE
