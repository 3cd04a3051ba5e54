// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Evaluation of plans: expansion, simulation, energy and bounds.

#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/simulate/simulation.hpp>
#include <hetplan/solve/lp.hpp>
#include <hetplan/tasks/expand.hpp>

namespace hetplan {

/// A simulated plan: its evaluation, task graph and trace.
struct judgement {
  hetplan::evaluation evaluation;
  tasks::task_graph graph;
  hetplan::trace trace;
};

/// Times of a run of generation. A group is one of the plan's microbatches; its token is made when the last sink task with one of its
/// samples ends.
struct token_times {
  seconds first;                        ///< first token, of the last group that has it
  std::optional<seconds> between = {};  ///< (last token - first token) / (tokens - 1) of the slowest group; nothing for one token
};
[[nodiscard]] token_times token_times_of(const plan& p, const judgement& j);

/// Returns latency / bound - 1, or 0 if there is no bound.
[[nodiscard]] inline double gap_to(seconds latency, seconds bound) { return bound.value() > 0 ? latency / bound - 1 : 0; }

/// Returns energy, memory, busy time and bytes of a trace, without bounds.
[[nodiscard]] evaluation measure(const tasks::task_graph& g, const trace& t, const cluster& c, const any_energy_model& energy);

/// Simulates a plan's task graph under the sharing or policy in `models`, else under the policy that the plan names.
/// Throws  invalid_input (both a sharing and a policy).
[[nodiscard]] trace simulate_plan(const plan& p, const tasks::task_graph& g, const network& net, const judge_models& models,
                                  const simulator_options& options);

namespace detail {

void check_one_network(const judge_models& models);

/// Fills in what follows from a judgement's graph and trace.
void complete(judgement& j, const stage_costs& s, const any_energy_model& energy, const simulator_options& options);

}  // namespace detail

/// Expands and simulates a plan. The evaluation lacks the bound over all plans: bound and gap stay 0.
///
/// @param models  for `stage_costs` only the energy and network models count: the memory model has been applied already.
/// Throws        invalid_input (the plan is invalid), invalid_model (a user's model misbehaves).
/// Source        semantics, sections 6, 8, 9 (c).
[[nodiscard]] judgement judge(const stage_costs& s, const judge_models& models = {}, const simulator_options& options = {});
[[nodiscard]] judgement judge(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                              const judge_models& models = {}, const simulator_options& options = {});

/// Completes an evaluation with the bound over all plans of its model, cluster and batch.
///
/// @param lp  improves the bound; `no_lp` keeps the closed relaxation.  Source: semantics, section 9.
void certify(evaluation& e, const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
             const any_memory_model& memory, const any_lp_solver& lp);

/// Judges and certifies a plan: the single source of its latency, energy, memory and gaps. Plans over their memory are judged, too (see
/// find_broken_limit).
[[nodiscard]] judgement evaluate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const judge_models& models = {}, const any_lp_solver& lp = {}, const simulator_options& options = {});

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/simulate/evaluate.ipp>
#endif
