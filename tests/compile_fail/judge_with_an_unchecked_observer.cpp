// SPDX-License-Identifier: BSL-1.0
// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/observed_run.hpp>

using namespace hetplan;

judgement wrong(const plan& p, const planning_graph& model, const cluster& c, const any_cost_model& cost) {
  return judge(p, model, c, cost, {}, {}, [](const task_ended&) { return true; });
}
