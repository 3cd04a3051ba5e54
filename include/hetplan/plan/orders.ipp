// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/orders.hpp>

#include <algorithm>

#include <hetplan/plan/plan_result.hpp>

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

HETPLAN_INLINE bool warmup_suffices(const stage_graph::node& s, long long k_s, const stage_graph::node& t, long long k_t) {
  const long long b_s = s.microbatch_size, b_t = t.microbatch_size;
  for (long long i = 0; i < s.microbatches; ++i) {
    const long long have = std::min<long long>(s.microbatches, k_s + i) * b_s;
    const long long need = std::min<long long>(t.microbatches, k_t + ((i + 1) * b_s + b_t - 1) / b_t - 1) * b_t;
    if (have < need) return false;
    if (k_s + i >= s.microbatches) break;  // all forwards are done: the rest holds
  }
  return true;
}

HETPLAN_INLINE int microbatches_in_flight(const plan& p, int warmup) {
  if (p.workload.mode != mode::training) return 1;
  return p.schedule.kind == schedule_kind::gpipe ? p.microbatches : std::min(warmup, p.microbatches);
}

HETPLAN_INLINE void set_warmup(plan& p, const planning_graph& model, warmup_rule r) {
  p.schedule.warmup.clear();
  if (p.workload.mode != mode::training || p.schedule.kind != schedule_kind::one_f_one_b) return;
  if (r == warmup_rule::hide_communication) return;
  for (const auto& node : make_stage_graph(p, model).nodes) {
    p.schedule.warmup.push_back(r == warmup_rule::everything ? node.microbatches : warmup_of(r, node.depth));
  }
}

HETPLAN_INLINE std::vector<int> resolve_warmup(const plan& p, const stage_graph& g) {
  if (!p.schedule.warmup.empty()) return p.schedule.warmup;
  std::vector<int> k(g.nodes.size(), 1);
  for (auto it = g.topological.rbegin(); it != g.topological.rend(); ++it) {
    const stage_graph::node& s = g[*it];
    int& mine = k[it->index()];
    mine = warmup_of(warmup_rule::hide_communication, s.depth);
    for (const std::size_t e : s.out) {
      if (g.edges[e].backward_cut.value() == 0) continue;
      const stage_id t = g.edges[e].to;
      const auto holds = [&](int value) { return warmup_suffices(s, value, g[t], k[t.index()]); };
      if (holds(mine)) continue;
      int low = mine, high = s.microbatches;  // K = M always suffices, and the rule is monotone in K
      while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        (holds(middle) ? high : low) = middle;
      }
      mine = high;
    }
  }
  return k;
}

HETPLAN_INLINE void append_pipeline_order(std::vector<order_entry>& order, stage_id s, int microbatches, mode m, schedule_kind kind,
                                          int warmup) {
  const int first = m != mode::training || kind == schedule_kind::gpipe ? microbatches : std::min(warmup, microbatches);
  for (int i = 0; i < first; ++i) order.push_back({phase::forward, s, i});
  if (m != mode::training) return;
  for (int i = 0; i < microbatches; ++i) {
    order.push_back({phase::backward_input, s, i});
    if (first + i < microbatches) order.push_back({phase::forward, s, first + i});
  }
}

HETPLAN_INLINE std::vector<std::vector<order_entry>> device_orders(const plan& p, const stage_graph& g, std::size_t devices) {
  std::vector<std::vector<order_entry>> orders(devices);
  if (p.schedule.kind == schedule_kind::explicit_orders) {
    for (std::size_t d = 0; d < std::min(devices, p.schedule.orders.size()); ++d) orders[d] = p.schedule.orders[d];
    return orders;
  }
  const bool warms_up = p.workload.mode == mode::training && p.schedule.kind == schedule_kind::one_f_one_b;
  const std::vector<int> warmup = warms_up ? resolve_warmup(p, g) : std::vector<int>(p.stages.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    for (const assignment& a : p.stages[s].devices) {
      auto& order = orders[a.device.index()];
      if (g.nodes[s].cuts.empty()) {
        append_pipeline_order(order, stage_id(s), g.nodes[s].microbatches, p.workload.mode, p.schedule.kind, warmup[s]);
        continue;
      }
      // Passes of unequal sizes never run under 1F1B (validate): forwards, then backwards.
      for (int i = 0; i < g.nodes[s].passes(phase::forward); ++i) order.push_back({phase::forward, stage_id(s), i});
      if (p.workload.mode != mode::training) continue;
      for (int i = 0; i < g.nodes[s].passes(phase::backward_input); ++i) order.push_back({phase::backward_input, stage_id(s), i});
    }
  }
  return orders;
}

}  // namespace hetplan
