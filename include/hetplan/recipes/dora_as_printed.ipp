// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/dora_as_printed.hpp>

#include <algorithm>
#include <utility>

#include <hetplan/cluster/uncontended.hpp>
#include <hetplan/decompose/decomposition.hpp>
#include <hetplan/recipes/plan_on_view.hpp>
#include <hetplan/schedule/refine.hpp>
#include <hetplan/simulate/candidate_rounds.hpp>

namespace HETPLAN_NAMESPACE::recipes {

HETPLAN_INLINE plan_result dora_as_printed(const planning_problem& problem, const any_objective& objective, int /*keep*/,
                                           const candidate_observer& observer) {
  candidate_rounds rounds(2, objective, observer);
  const cluster view = uncontended(problem.cluster);
  const view_search how{.warmups = {warmup_rule::hide_communication, warmup_rule::depth},
                        .memory_first = true,
                        .k = 10,
                        .row = decompose::serial_chains{},
                        .objective = objective};
  plan_result chosen = plan_on_view(problem, objective, "dora-printed", problem.model, view, how, rounds.part());
  if (!chosen.status.ok()) return chosen;
  planning_problem rest = problem;
  rest.steps = std::max(1LL, problem.steps - chosen.steps);
  plan_result scheduled = schedule::refine(rest, objective, chosen.plans, 1, {.predicted = true}, rounds.part());
  scheduled.candidates += chosen.candidates;
  scheduled.elapsed += chosen.elapsed;
  scheduled.steps += chosen.steps;
  return scheduled;
}

}  // namespace HETPLAN_NAMESPACE::recipes
