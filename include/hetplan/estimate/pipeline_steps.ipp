// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/estimate/pipeline_steps.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/core/keyed.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan {

namespace detail {

/// Throws invalid_input unless estimators support the plan.
void require_estimable(const plan& p);

}  // namespace detail

HETPLAN_INLINE bool pipeline_steps::connected() const {
  return std::all_of(links.begin(), links.end(), [](const link_step& l) { return std::isfinite(l.own_s); }) &&
         std::all_of(stages.begin(), stages.end(), [](const stage_step& s) { return std::isfinite(s.collective_s); });
}

namespace detail {

HETPLAN_INLINE void require_estimable(const plan& p) {
  const auto require = [](bool ok, const std::string& expected) {
    if (!ok) throw invalid_input("estimate: expected " + expected);
  };
  require_plain_stages(p, "estimate");
  require(p.pipeline_count() == 1, "one pipeline, got " + std::to_string(p.pipeline_count()));
  require(!p.parameter_server, "a plan without a parameter server");
  require(p.transfers == transfer_mode::overlap, "transfers that overlap computing, got \"block\"");
  require(p.schedule.kind != schedule_kind::explicit_orders, "1F1B or GPipe, got explicit orders");
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    require(p.size_of(p.stages[s]) == p.microbatch_size, "one microbatch size, got " + std::to_string(p.size_of(p.stages[s])) +
                                                             " in stage " + std::to_string(s) + " of a plan of " +
                                                             std::to_string(p.microbatch_size));
  }
}

HETPLAN_INLINE std::vector<device_id> devices_of(const stage& s) {
  std::vector<device_id> ids;
  for (const assignment& a : s.devices) ids.push_back(a.device);
  return ids;
}

HETPLAN_INLINE double tied_bytes(const plan& p, const planning_graph& model, std::size_t s) {
  key_index later;
  for (std::size_t t = s + 1; t < p.stages.size(); ++t) {
    for (const layer_id l : p.stages[t].layers) {
      if (model[l].weight_group >= 0) later.insert({model[l].weight_group});
    }
  }
  double total = 0;
  for_each_tensor(model, p.stages[s], [&](const layer& l) {
    if (later.contains({l.weight_group})) total += l.trainable_weight().value();
  });
  return total;
}

HETPLAN_INLINE double collective_s(const stage_costs& whole, std::size_t s) {
  const network& net = whole.cluster.network();
  const auto& devices = whole.stages[s].devices;
  const double weight = whole.stages[s].trainable_bytes;
  double total = 0;
  if (devices.size() > 1 && weight > 0) total += ring_reduction(net, devices_of(whole.plan.stages[s])).time_s(weight);
  if (const double tied = tied_bytes(whole.plan, whole.model, s); tied > 0)
    total += worst_exchange(net, whole.cluster.devices()).swap_s(tied);
  double optimizer = 0;
  for (const stage_costs::part& d : devices) optimizer = std::max(optimizer, d.optimizer_s);
  return total + optimizer;
}

}  // namespace detail

HETPLAN_INLINE pipeline_steps::link_step time_link(const exchange_cost& x, int microbatch_size, int microbatches, double forward_cut,
                                                   double backward_cut) {
  pipeline_steps::link_step link{.forward_cut = forward_cut, .backward_cut = backward_cut};
  const double forward_bytes = microbatch_size * forward_cut;
  link.forward_s = x.forward.time_s(forward_bytes);
  link.forward_wire_s = forward_bytes > 0 ? forward_bytes * x.forward.s_per_byte : 0;  // avoids the NaN of 0 bytes on a missing route
  if (backward_cut > 0) {
    const double backward_bytes = microbatch_size * backward_cut;
    link.backward_s = x.backward.time_s(backward_bytes);
    link.backward_wire_s = backward_bytes * x.backward.s_per_byte;
  }
  link.total_s = link.forward_s + link.backward_s;
  const double wire_s = x.together_s(link.forward_wire_s, link.backward_wire_s);
  link.own_s = link.total_s + (microbatches > 1 ? (microbatches - 1) * wire_s : 0);
  return link;
}

HETPLAN_INLINE void add_passes(pipeline_steps::link_step& link, const exchange_cost& x, int microbatch_size, int microbatches,
                               int first_passes, double first_cut, double later_cut) {
  const pipeline_steps::link_step first = time_link(x, microbatch_size, microbatches * first_passes, first_cut, 0),
                                  later = time_link(x, microbatch_size, microbatches, later_cut, 0);
  link.first_s = first.total_s;
  link.first_own_s = first.own_s;
  link.later_s = later.total_s;
  link.later_own_s = later.own_s;
}

HETPLAN_INLINE pipeline_steps make_steps(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost) {
  return make_steps(stage_costs(p, model, c, cost));
}

HETPLAN_INLINE pipeline_steps make_steps(const stage_costs& whole) {
  const plan& p = whole.plan;
  const stage_graph& graph = whole.graph;
  detail::require_estimable(p);
  const bool training = whole.training();
  const std::vector<int> warmup = resolve_warmup(p, graph);
  const bool generation = p.workload.mode == mode::generation;
  pipeline_steps steps{.mode = p.workload.mode,
                       .microbatches = p.microbatches,
                       .first_passes = whole.passes.size(run_part::first_token),
                       .later_passes = whole.passes.size(run_part::later_tokens),
                       .chunks_in_flight = p.workload.chunks_in_flight,
                       .stages = {},
                       .links = {}};

  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage_graph::node& node = graph.nodes[s];
    pipeline_steps::stage_step step{.input_bytes = input_bytes(graph, stage_id(s)),
                                    .depth = node.depth,
                                    .in_flight = microbatches_in_flight(p, warmup[s]),
                                    .in = node.in,
                                    .out = node.out};
    for (std::size_t i = 0; i < p.stages[s].devices.size(); ++i) {
      const assignment& a = p.stages[s].devices[i];
      const stage_costs::part& d = whole.stages[s].devices[i];
      const double send_s = whole.cluster[a.device].send_overhead.value();
      const sending_tasks sends = sends_of(p.workload, s == 0, s + 1 == p.stages.size());
      const auto sent_s = [&](run_part part) { return sends.forward ? send_s * whole.running(stage_id(s), part) : 0; };
      const double returned_s = sends.backward ? send_s : 0;
      const double forward_s = d.forward_step_s() + sent_s(run_part::whole), backward_s = training ? d.backward_step_s() + returned_s : 0;
      step.devices.push_back({a.device, a.samples, forward_s, backward_s, d.optimizer_s});
      step.forward_s = std::max(step.forward_s, forward_s);
      step.backward_s = std::max(step.backward_s, backward_s);
      step.total_s = std::max(step.total_s, forward_s + backward_s);
      if (generation) {
        step.first_s = std::max(step.first_s, whole.mean_task_s(stage_id(s), i, run_part::first_token) + sent_s(run_part::first_token));
        if (steps.later_passes > 0)
          step.later_s = std::max(step.later_s, whole.mean_task_s(stage_id(s), i, run_part::later_tokens) + sent_s(run_part::later_tokens));
      }
    }
    if (training) step.collective_s = detail::collective_s(whole, s);
    steps.stages.push_back(std::move(step));
  }

  for (const stage_edge& e : graph.edges) {
    const std::size_t from = e.from.index(), to = e.to.index();
    if (from >= to) {
      throw invalid_input("estimate: expected stages in topological order, got stage " + std::to_string(from) + " that feeds stage " +
                          std::to_string(to));
    }
    const exchange_cost x = peak_exchange(whole.cluster.network(), detail::devices_of(p[e.from]), detail::devices_of(p[e.to]));
    pipeline_steps::link_step link =
        time_link(x, p.microbatch_size, p.microbatches, whole.mean_cut(e), training ? e.backward_cut.value() : 0);
    if (generation) {
      add_passes(link, x, p.microbatch_size, p.microbatches, steps.first_passes, whole.mean_cut(e, run_part::first_token),
                 whole.mean_cut(e, run_part::later_tokens));
    }
    link.from = from;
    link.to = to;
    steps.links.push_back(link);
  }
  return steps;
}

}  // namespace hetplan
