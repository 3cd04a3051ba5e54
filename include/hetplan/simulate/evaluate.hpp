// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan costs: expand, simulate, charge energy, certify.

#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/simulate/simulator_options.hpp>
#include <hetplan/simulate/trace.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/expand.hpp>

namespace hetplan {

/// A simulated plan: its numbers, and the graph and trace behind them.
struct judgement {
  hetplan::evaluation evaluation;
  tasks::task_graph graph;
  hetplan::trace trace;
};

/// (end of the last step - end of the first) / (steps - 1), worst group; a group is one of the plan's microbatches,
/// a step of it ends with the last sink task that holds one of its samples.
[[nodiscard]] seconds time_between_tokens(const plan& p, const stage_graph& stages, const judgement& j);

/// T / bound - 1; 0 where there is no bound.
[[nodiscard]] inline double gap_to(seconds latency, seconds bound) { return bound.value() > 0 ? latency / bound - 1 : 0; }

/// Energy, memory, busy time and bytes of a trace; no bounds.
[[nodiscard]] evaluation measure(const tasks::task_graph& g, const trace& t, const cluster& c, const any_energy_model& energy);

/// Simulates the graph of a plan under the models' sharing or policy, or under the policy that the plan names.
///
/// Throws  invalid_input (both a sharing and a policy).
[[nodiscard]] trace simulate_plan(const plan& p, const tasks::task_graph& g, const network& net, const judge_models& models,
                                  const simulator_options& options);

namespace detail {

void check_one_network(const judge_models& models);

/// All of a judgement that follows from its graph and trace.
void complete(judgement& j, const stage_costs& s, const any_energy_model& energy, const simulator_options& options);

}  // namespace detail

/// Expands and simulates a plan: its numbers without the bound over all plans (bound and gap stay 0).
///
/// @param models  of the stage costs, those of energy and network: its memory model has been asked.
/// Throws        invalid_input (the plan is invalid), invalid_model (a user's model misbehaves).
/// Source        semantics, sections 6, 8, 9 (c).
[[nodiscard]] judgement judge(const stage_costs& s, const judge_models& models = {}, const simulator_options& options = {});
[[nodiscard]] judgement judge(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                              const judge_models& models = {}, const simulator_options& options = {});

/// Completes an evaluation with the bound over all plans of its model, cluster and batch.
///
/// @param lp  improves the bound; `no_lp` keeps to the closed relaxation.  Source: semantics, section 9.
void certify(evaluation& e, const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
             const any_memory_model& memory, const any_lp_solver& lp);

/// Judges and certifies a plan: the one place where its latency, energy, memory and gaps come from.
///
/// A plan over its memory is judged all the same; find_broken_limit says so.
[[nodiscard]] judgement evaluate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const judge_models& models = {}, const any_lp_solver& lp = {}, const simulator_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/evaluate.ipp>
#endif
