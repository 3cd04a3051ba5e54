// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/stage_costs.hpp>

#include <algorithm>
#include <span>
#include <utility>

#include <hetplan/cluster/network.hpp>
#include <hetplan/plan/validate.hpp>

namespace hetplan {

HETPLAN_INLINE stage_costs::stage_costs(const planning_problem& problem, const hetplan::plan& p)
    : stage_costs(p, problem.model, problem.cluster, problem.cost, problem.models.memory) {}

HETPLAN_INLINE stage_costs::stage_costs(const hetplan::plan& p, const planning_graph& m, const hetplan::cluster& c,
                                        const any_cost_model& cost, const any_memory_model& memory)
    : plan(p), model(m), cluster(c), graph(require_valid(p, m, c)), passes(p.workload, m),
      static_bytes(hetplan::static_bytes(p, m, memory, c)) {
  stages.resize(p.stages.size());
  if (std::any_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return !s.offload.empty(); }))
    check_tiers(cost, m, c.devices(), passes);
  if (p.workload.mode == mode::generation) {
    add_passes(cost, memory);
    return;
  }
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const stage& s = p.stages[i];
    const double inputs = input_bytes(graph, stage_id(i));
    if (training() && s.devices.size() > 1) stages[i].trainable_bytes = trainable_bytes(m, s);
    stages[i].devices = parts_of(s, graph.nodes[i].microbatch_size, inputs, cost, memory);
    for (const phase what : {phase::forward, phase::backward_input}) {
      const auto& cuts = s.cuts.of(what);
      for (std::size_t k = 1; k < cuts.size(); ++k) {
        const long long size = cuts[k] - cuts[k - 1];
        if (!stages[i].passes.contains({size})) stages[i].passes.insert({size}, parts_of(s, size, inputs, cost, memory));
      }
    }
  }
}

HETPLAN_INLINE void stage_costs::add_passes(const any_cost_model& cost, const any_memory_model& memory) {
  const std::vector<token_pass> of_shape = shapes_of(passes);
  for (const token_pass& shape : of_shape) shapes.push_back(make_stage_graph(plan, model, shape));
  for (std::size_t i = 0; i < stages.size(); ++i) stages[i].devices.resize(plan.stages[i].devices.size());  // a stage may run in no pass
  for (std::size_t k = 0; k < passes.distinct().size(); ++k) {
    const token_pass& pass = passes.distinct()[k];
    pass_costs& costs = by_pass.emplace_back();
    costs.stages.resize(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const stage& s = plan.stages[i];
      if (!hetplan::runs(s, model, pass)) continue;
      costs.stages[i] = parts_of(s, plan.size_of(s), 0, cost, memory, pass);
      std::vector<part>& mean = stages[i].devices;
      const double weight = passes.count_of(k) / passes.size();
      for (std::size_t d = 0; d < mean.size(); ++d) {
        const part& mine = costs.stages[i][d];
        mean[d].overhead_s += weight * mine.overhead_s;
        mean[d].forward_s += weight * mine.forward_s;
        mean[d].memory_bound.forward_s += weight * mine.memory_bound.forward_s;
        mean[d].forward_sent += weight * mine.forward_sent;
        mean[d].forward_wait_s += weight * mine.forward_wait_s;
        mean[d].kept.forward = std::max(mean[d].kept.forward, mine.kept.forward);
      }
    }
    costs.shape = static_cast<std::size_t>(std::find(of_shape.begin(), of_shape.end(), hetplan::shape_of(pass)) - of_shape.begin());
  }
}

HETPLAN_INLINE double stage_costs::mean_cut(const stage_edge& e, run_part of) const {
  if (by_pass.empty()) return e.forward_cut.value();
  if (passes.size(of) == 0) return 0;
  double total = 0;
  for (std::size_t k = 0; k < by_pass.size(); ++k) {
    const stage_edge* now = shapes[by_pass[k].shape].find(e.from, e.to);
    if (now != nullptr) total += passes.count_of(k, of) * now->forward_cut.value();
  }
  return total / passes.size(of);
}

HETPLAN_INLINE double stage_costs::running(stage_id s, run_part of) const {
  if (by_pass.empty()) return 1;
  if (passes.size(of) == 0) return 0;
  double total = 0;
  for (std::size_t k = 0; k < by_pass.size(); ++k) total += by_pass[k].stages[s.index()].empty() ? 0 : passes.count_of(k, of);
  return total / passes.size(of);
}

HETPLAN_INLINE double stage_costs::mean_task_s(stage_id s, std::size_t position, run_part of) const {
  if (passes.size(of) == 0) return 0;
  double total = 0;
  for (std::size_t k = 0; k < by_pass.size(); ++k) {
    const std::vector<stage_costs::part>& mine = by_pass[k].stages[s.index()];
    if (!mine.empty()) total += passes.count_of(k, of) * mine[position].forward_step_s();
  }
  return total / passes.size(of);
}

HETPLAN_INLINE std::vector<stage_costs::part> stage_costs::parts_of(const stage& s, long long samples, double inputs,
                                                                    const any_cost_model& cost, const any_memory_model& memory,
                                                                    const token_pass& pass) const {
  const long long size = plan.size_of(s);
  std::vector<part> parts;
  for (std::size_t i = 0; i < s.devices.size(); ++i) {
    assignment a = s.devices[i];
    if (samples != size) a.samples = static_cast<int>(a.samples * samples / size);
    const device& d = cluster[a.device];
    const std::size_t column = s.column_of(i);
    const auto time_s = [&](phase what) { return stage_time_s(cost, model, s, a, d, what, pass, column); };
    const auto memory_s = [&](phase what) { return stage_memory_bound_s(cost, model, s, a, d, what, pass, column); };
    part mine{.overhead_s = d.overhead.value(),
              .forward_s = time_s(phase::forward),
              .memory_bound = {.forward_s = memory_s(phase::forward)},
              .kept = stage_share_memory(memory, model, s, a, plan.workload, inputs, column, pass)};
    if (training()) {
      mine.backward_input_s = time_s(phase::backward_input);
      if (s.recomputes()) mine.again_s = repeated_s(cost, model, s, a, d, pass, column);
      mine.backward_weight_s = time_s(phase::backward_weight);
      mine.optimizer_s = stage_optimizer_s(cost, model, s, d, column);
      mine.memory_bound.backward_input_s = memory_s(phase::backward_input);
      mine.memory_bound.backward_weight_s = memory_s(phase::backward_weight);
    }
    if (!s.offload.empty()) add_reads(s, a, d, pass, column, mine);
    if (s.column_count() > 1) add_all_reduces(s, i, a.samples, pass, mine);
    if (s.devices.size() > 1 && (s.shard == sharding::zero2 || s.shard == sharding::fsdp)) add_units(s, a, cost, mine);
    parts.push_back(std::move(mine));
  }
  return parts;
}

HETPLAN_INLINE void stage_costs::add_all_reduces(const stage& s, std::size_t position, int samples, const token_pass& pass,
                                                 part& mine) const {
  const std::size_t columns = s.column_count(), first = s.row_of(position) * columns;
  const auto device_at = [&](std::size_t column) { return s.devices[first + column % columns].device; };
  const auto steps = static_cast<double>(2 * (columns - 1));
  const auto reduce = [&](const std::vector<double>& all, double& time_s, double& sent) {
    for (const double per_sample : all) {
      const double volume = ring_share(columns) * per_sample * samples;
      double slowest_s = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const transfer_cost link = peak_transfer(cluster.network(), device_at(c), device_at(c + 1));
        slowest_s = std::max(slowest_s, steps * link.latency_s + (volume > 0 ? volume * link.s_per_byte : 0));
      }
      time_s += slowest_s;
      sent += volume;
    }
  };
  reduce(all_reduces_of(model, s, phase::forward, pass), mine.forward_s, mine.forward_sent);
  if (!training()) return;
  reduce(all_reduces_of(model, s, phase::backward_input, pass), mine.backward_input_s, mine.backward_sent);
  double counted = 0;  // in backward_sent
  reduce(repeated_all_reduces(model, s, pass), mine.again_s, counted);
}

HETPLAN_INLINE void stage_costs::add_reads(const stage& s, const assignment& a, const device& d, const token_pass& pass, std::size_t column,
                                           part& mine) const {
  const auto wait_s = [&](const std::vector<double>& reads) {
    double longest = 0;
    for (std::size_t t = 0; t < reads.size(); ++t) {
      if (reads[t] == 0) continue;
      const memory_tier& tier = d.tiers[t];
      longest = std::max(longest, reads[t] / std::min(tier.bandwidth, cluster.network()[tier.shared].capacity).value());
    }
    return longest;
  };
  for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
    if (what != phase::forward && !training()) continue;
    std::vector<double>& reads = mine.reads[static_cast<std::size_t>(what)];
    reads = stage_reads(model, s, a, d, what, pass, column);
    (what == phase::forward ? mine.forward_wait_s : mine.backward_wait_s) += wait_s(reads);
  }
}

HETPLAN_INLINE void stage_costs::add_units(const stage& s, const assignment& a, const any_cost_model& cost, part& mine) const {
  // The cost model treats a unit as a stage of its own; the unit also pays the boundary before it.
  const device& d = cluster[a.device];
  const std::span<const layer_id> all = s.layers;
  const auto repeated = repeated_layers(model, s);
  const layer_id* before = nullptr;
  std::size_t first = 0;  // of the unit, whose layers follow each other in the stage
  for (const auto& layers : units_of(s)) {
    const stage unit{.layers = layers};
    const auto boundary_s = [&](phase what) {
      if (before == nullptr || !cost.times_boundaries()) return 0.0;
      return checked_boundary_s(cost, model[*before], model[layers.front()], token_pass{}.asks(what, a.samples), d);
    };
    double again = 0, memory_again = 0;
    const std::size_t last = first + layers.size();
    for (const std::span<const layer_id> run : repeated) {
      const auto begin = static_cast<std::size_t>(run.data() - all.data()), end = begin + run.size();
      if (begin >= last || end <= first) continue;
      const std::size_t from = std::max(begin, first), to = std::min(end, last);
      const auto layers_again = all.subspan(from, to - from);
      again = cost.total_s(model, layers_again, token_pass{}.asks(phase::forward, a.samples, a.tensor_parallel), d, again);
      memory_again += memory_bound_s(cost, model, unit, layers_again, token_pass{}.asks(phase::forward, a.samples, a.tensor_parallel), d);
      if (begin < first) again += boundary_s(phase::forward);
    }
    const auto time_s = [&](phase what) { return stage_time_s(cost, model, unit, a, d, what, token_pass{}) + boundary_s(what); };
    const auto memory_s = [&](phase what) { return stage_memory_bound_s(cost, model, unit, a, d, what, token_pass{}); };
    mine.units.push_back(
        {{time_s(phase::forward), time_s(phase::backward_input) + again, time_s(phase::backward_weight), again},
         {memory_s(phase::forward), memory_s(phase::backward_input) + memory_again, memory_s(phase::backward_weight), memory_again}});
    before = &layers.back();
    first = last;
  }
}

}  // namespace hetplan
