// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan's pipeline is to an estimator: how long each stage and each link takes for one microbatch.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/cluster/exchange.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/stage_cost.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace HETPLAN_NAMESPACE {

/// Execution steps (stages) and communication steps (links) of one pipeline.
///
/// Seconds are of one microbatch unless stated; outside training every backward is 0. A route that is missing
/// makes its step infinite.
struct pipeline_steps {
  /// A device's part of a stage.
  struct device_step {
    device_id device;
    int samples = 1;
    double forward_s = 0;
    double backward_s = 0;   ///< both parts
    double optimizer_s = 0;  ///< once an iteration
  };
  struct stage_step {
    double forward_s = 0;     ///< the largest of its devices
    double backward_s = 0;    ///< the largest of its devices
    double total_s = 0;       ///< the largest forward + backward of one device: at most the sum of the two above
    double input_bytes = 0;   ///< per sample, from other stages
    double collective_s = 0;  ///< once an iteration: its ring, tensors shared with later stages, the optimizer's step
    int depth = 1;
    int in_flight = 1;  ///< K: microbatches whose activations it holds at once; 1 outside training
    std::vector<device_step> devices = {};
    std::vector<std::size_t> in = {};  ///< indices of links
    std::vector<std::size_t> out = {};
  };
  struct link_step {
    std::size_t from = 0;
    std::size_t to = 0;
    double forward_cut = 0;     ///< bytes per sample
    double backward_cut = 0;    ///< bytes per sample; 0 outside training
    double forward_s = 0;       ///< latency included
    double backward_s = 0;      ///< latency included; 0 where nothing goes back
    double forward_wire_s = 0;  ///< without the latency: what keeps the next microbatch off the wire
    double backward_wire_s = 0;
    double total_s = 0;  ///< forward + backward
    double own_s = 0;    ///< the iteration's whole traffic of this link, one microbatch behind the other
  };

  hetplan::mode mode = mode::training;
  int microbatches = 1;
  std::vector<stage_step> stages;  ///< in the plan's order, which is topological
  std::vector<link_step> links;    ///< by (from, to)

  /// Are all routes there that the plan needs? Otherwise every estimate is infinite.
  [[nodiscard]] bool connected() const;
};

namespace detail {

/// Throws invalid_input unless a plan is one that estimators can read.
void require_estimable(const plan& p, const planning_graph& model, const cluster& c);

template <cost_model Cost>
[[nodiscard]] pipeline_steps::device_step time_device(const plan& p, const stage& s, const assignment& a, const planning_graph& model,
                                                      const cluster& c, const Cost& cost) {
  const device& d = c[a.device];
  const auto time_s = [&](phase what) { return stage_time_s(cost, model, s, a, d, what, p.workload.context); };
  pipeline_steps::device_step step{.device = a.device, .samples = a.samples, .forward_s = time_s(phase::forward)};
  if (p.workload.mode != mode::training) return step;
  step.backward_s = time_s(phase::backward_input) + time_s(phase::backward_weight);
  step.optimizer_s = stage_optimizer_s(cost, model, s, d);
  return step;
}

[[nodiscard]] std::vector<device_id> devices_of(const stage& s);

/// Bytes of the weight groups that stage s trains and some later stage holds too.
[[nodiscard]] double tied_bytes(const plan& p, const planning_graph& model, std::size_t s);

/// What ends a stage's iteration in training [s].
[[nodiscard]] double collective_s(const plan& p, const planning_graph& model, const cluster& c, std::size_t s,
                                  const pipeline_steps::stage_step& step);

}  // namespace detail

/// Times a link that every microbatch crosses, there with `forward_cut` and back with `backward_cut` bytes per sample.
///
/// own = forward + backward + (M - 1) wire, where wire is the sum of both directions if they take turns and the larger
/// one if the wire is full duplex.
[[nodiscard]] pipeline_steps::link_step time_link(const exchange_cost& x, int microbatch_size, int microbatches, double forward_cut,
                                                  double backward_cut);

/// Times the steps of a plan; every link has its peak bandwidth to itself.
///
/// Stage: the slowest of its devices. Link: the slowest pair of its two groups is charged for all of them. Collective of a
/// stage: its ring, then the tensors that a later stage holds too at the cluster's worst pair both ways, then the slowest
/// device's optimizer step.
///
/// @param p         one pipeline, one microbatch size, 1F1B or GPipe, no parameter server; stages in topological order.
/// Units            SI.  Complexity  O(layers x devices of their stage + pairs of devices).
/// Throws           invalid_input (the plan is invalid or none of these); invalid_model (a cost is not finite or negative).
/// Source           Asteroid, section 3.2, eqs. 4 and 5. Deviations: latency; full-duplex wires; rings on shared resources;
///                  tied tensors, which the paper does not have, belong to the earlier stage. The plan's transfer rules and
///                  network policy are not read.
template <cost_model Cost>
[[nodiscard]] pipeline_steps make_steps(const plan& p, const planning_graph& model, const cluster& c, const Cost& cost) {
  detail::require_estimable(p, model, c);
  const stage_graph graph = make_stage_graph(p, model);
  const bool training = p.workload.mode == mode::training;
  const std::vector<int> warmup = resolve_warmup(p, graph);
  pipeline_steps steps{.mode = p.workload.mode, .microbatches = p.microbatches, .stages = {}, .links = {}};

  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage_graph::node& node = graph.nodes[s];
    pipeline_steps::stage_step step{.input_bytes = input_bytes(graph, stage_id(s)),
                                    .depth = node.depth,
                                    .in_flight = microbatches_in_flight(p, warmup[s]),
                                    .in = node.in,
                                    .out = node.out};
    for (const assignment& a : p.stages[s].devices) {
      step.devices.push_back(detail::time_device(p, p.stages[s], a, model, c, cost));
      const auto& d = step.devices.back();
      step.forward_s = std::max(step.forward_s, d.forward_s);
      step.backward_s = std::max(step.backward_s, d.backward_s);
      step.total_s = std::max(step.total_s, d.forward_s + d.backward_s);
    }
    if (training) step.collective_s = detail::collective_s(p, model, c, s, step);
    steps.stages.push_back(std::move(step));
  }

  for (const stage_edge& e : graph.edges) {
    const std::size_t from = e.from.index(), to = e.to.index();
    if (from >= to) {
      throw invalid_input("estimate: expected stages in topological order, got stage " + std::to_string(from) + " that feeds stage " +
                          std::to_string(to));
    }
    const exchange_cost x = peak_exchange(c.network(), detail::devices_of(p[e.from]), detail::devices_of(p[e.to]));
    pipeline_steps::link_step link =
        time_link(x, p.microbatch_size, p.microbatches, e.forward_cut.value(), training ? e.backward_cut.value() : 0);
    link.from = from;
    link.to = to;
    steps.links.push_back(link);
  }
  return steps;
}

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/plan/pipeline_steps.ipp>
#endif
