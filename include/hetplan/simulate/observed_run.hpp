// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The judge with observers, which receive task_ended and transfer_ended and may stop the run.

#include <hetplan/core/observer.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>

namespace hetplan {

/// As simulate_plan without observers. Also for judge and evaluate, an observer that handles neither event or returns no `control` is
/// refused here.
template <class... Observers>
  requires(sizeof...(Observers) > 0)
[[nodiscard]] trace simulate_plan(const plan& p, const tasks::task_graph& g, const network& net, const judge_models& models,
                                  const simulator_options& options, Observers&... observers) {
  static_assert((check_observer<Observers, task_ended, transfer_ended>() && ...));
  detail::check_one_network(models);
  if (models.sharing) return simulate(g, net, models.sharing, options, observers...);
  if (models.network.as_planned()) return simulate(g, net, policy_of_plan{p.sharing_policy}, options, observers...);
  return simulate(g, net, models.network, options, observers...);
}

/// As judge without observers.
template <class... Observers>
  requires(sizeof...(Observers) > 0)
[[nodiscard]] judgement judge(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                              const judge_models& models, const simulator_options& options, Observers&&... observers) {
  const stage_costs s(p, model, c, cost, models.memory);
  judgement j;
  j.graph = tasks::expand(s);
  j.trace = simulate_plan(p, j.graph, c.network(), models, options, observers...);
  detail::complete(j, s, models.energy, options);
  return j;
}

/// As evaluate without observers.
template <class... Observers>
  requires(sizeof...(Observers) > 0)
[[nodiscard]] judgement evaluate(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost,
                                 const judge_models& models, const any_lp_solver& lp, const simulator_options& options,
                                 Observers&&... observers) {
  judgement j = judge(p, model, c, cost, models, options, observers...);
  certify(j.evaluation, p, model, c, cost, models.memory, lp);
  return j;
}

}  // namespace hetplan
