// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan costs: expand, simulate, charge energy, certify.

#include <concepts>

#include <hetplan/cost/energy_model.hpp>
#include <hetplan/plan/bounds.hpp>
#include <hetplan/plan/limits.hpp>
#include <hetplan/simulate/simulator.hpp>
#include <hetplan/tasks/contention_bound.hpp>
#include <hetplan/tasks/expand.hpp>

namespace HETPLAN_NAMESPACE {

/// Stands for the network policy that the plan names.
struct as_planned {};
template <class P>
concept network_choice = network_policy<P> || std::same_as<P, as_planned>;

/// The user's models of a judgement beside the cost model; each defaults to what files mean.
template <memory_model Memory = plain_memory, energy_model Energy = linear_power, network_choice Network = as_planned>
struct judge_models {
  Memory memory = {};
  Energy energy = {};
  Network network = {};
};

/// A simulated plan: its numbers, and the graph and trace behind them.
struct judgement {
  hetplan::evaluation evaluation;
  tasks::task_graph graph;
  hetplan::trace trace;
};

/// (end of the last step - end of the first) / (steps - 1), worst group; a group is one of the plan's microbatches,
/// a step of it ends with the last sink task that holds one of its samples.
[[nodiscard]] seconds time_between_tokens(const plan& p, const planning_graph& model, const judgement& j);

/// T / bound - 1; 0 where there is no bound.
[[nodiscard]] inline double gap_to(seconds latency, seconds bound) { return bound.value() > 0 ? latency / bound - 1 : 0; }

/// Energy, memory, busy time and bytes of a trace; no bounds.
template <energy_model Energy>
[[nodiscard]] evaluation measure(const tasks::task_graph& g, const trace& t, const cluster& c, const Energy& energy) {
  evaluation e{.latency = t.latency};
  e.devices.resize(c.size());
  for (const device& d : c.devices()) {
    const std::size_t i = d.id.index();
    if (!g.used[i]) continue;
    const device_usage usage{t.latency, seconds(t.busy_s[i]), bytes(t.sent_bytes[i]), bytes(t.received_bytes[i])};
    const joules spent = energy.energy(usage, d);
    if (!is_finite(spent) || spent.value() < 0) {
      throw invalid_model("energy model: energy(device \"" + d.name + "\") = " + to_text(spent.value()) + " J; expected finite >= 0");
    }
    e.devices[i] = {true, spent, bytes(t.peak_bytes[i]), seconds(t.busy_s[i])};
  }
  for (const double b : t.resource_bytes) e.resource_bytes.push_back(bytes(b));
  return e;
}

/// Expands and simulates a plan: its numbers without the bound over all plans (bound and gap stay 0).
///
/// Throws        invalid_input (the plan is invalid), invalid_model (a user's model misbehaves).
/// Source        semantics, sections 6, 8, 9 (c).
template <cost_model Cost, memory_model Memory = plain_memory, energy_model Energy = linear_power, network_choice Network = as_planned,
          class... Observers>
[[nodiscard]] judgement judge(const plan& p, const planning_graph& model, const cluster& c, const Cost& cost,
                              const judge_models<Memory, Energy, Network>& models = {}, const simulator_options& options = {},
                              Observers&&... observers) {
  judgement j;
  j.graph = tasks::expand(p, model, c, cost, models.memory);
  const auto run = [&](const auto& policy) {
    j.trace = simulate(j.graph, c.network(), policy, options, observers...);
    return policy.access();
  };
  route_access access;
  if constexpr (std::same_as<Network, as_planned>) access = run(policy_of_plan{p.network});
  else access = run(models.network);
  evaluation& e = j.evaluation;
  e = measure(j.graph, j.trace, c, models.energy);
  if (p.workload.mode == mode::generation) e.time_between_tokens = time_between_tokens(p, model, j);
  const tasks::path_times paths = tasks::longest_paths(j.graph, c.network());
  const bool is_shared = access != route_access::unlimited;
  e.schedule_bound = is_shared ? tasks::schedule_bound(j.graph, c.network(), paths) : tasks::uncontended_bound(j.graph, paths);
  const bool as_given = options.capacities.empty() && options.speeds.empty();
  if (as_given) e.contention_bound = is_shared ? tasks::contention_bound(j.graph, c.network(), paths) : e.schedule_bound;
  e.schedule_gap = gap_to(e.latency, e.schedule_bound);
  return j;
}

/// Completes an evaluation with the bound over all plans of its model, cluster and batch.
///
/// @param lp  improves the bound; `no_lp` keeps to the closed relaxation.  Source: semantics, section 9.
template <cost_model Cost, memory_model Memory, lp_solver Lp>
void certify(evaluation& e, const plan& p, const planning_graph& model, const cluster& c, const Cost& cost, const Memory& memory,
             const Lp& lp) {
  e.bound = plan_bound(p, model, c, cost, memory, lp, within_memory(e, c));
  e.gap = gap_to(e.latency, e.bound);
}

/// Judges and certifies a plan: the one place where its latency, energy, memory and gaps come from.
///
/// A plan over its memory is judged all the same; find_broken_limit says so.
template <cost_model Cost, memory_model Memory = plain_memory, energy_model Energy = linear_power, network_choice Network = as_planned,
          lp_solver Lp = no_lp, class... Observers>
[[nodiscard]] judgement evaluate(const plan& p, const planning_graph& model, const cluster& c, const Cost& cost,
                                 const judge_models<Memory, Energy, Network>& models = {}, const Lp& lp = {},
                                 const simulator_options& options = {}, Observers&&... observers) {
  judgement j = judge(p, model, c, cost, models, options, observers...);
  certify(j.evaluation, p, model, c, cost, models.memory, lp);
  return j;
}

}  // namespace HETPLAN_NAMESPACE

#ifndef HETPLAN_COMPILED
#include <hetplan/simulate/evaluate.ipp>
#endif
