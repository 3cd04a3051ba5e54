// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/zero_bubble.hpp>

#include <string>
#include <utility>

#include <hetplan/plan/bounds.hpp>
#include <hetplan/recipes/pipeline.hpp>
#include <hetplan/schedule/order_plan.hpp>
#include <hetplan/simulate/ranking.hpp>

namespace hetplan::recipes {

HETPLAN_INLINE plan_result zero_bubble(const planning_problem& problem, const any_objective& objective, int keep,
                                       const candidate_observer& observer) {
  check_keep(keep, "zero_bubble");
  planning_problem part = problem;
  const auto named = [](plan_result r) {
    for (plan& p : r.plans)
      p.planner = "zero-bubble" + (p.planner.find(',') == std::string::npos ? "" : p.planner.substr(p.planner.find(',')));
    return r;
  };
  if (problem.job.workload.mode != mode::training) return named(pipeline(problem, objective, keep, observer));
  constexpr int tried = 5;
  candidate_rounds rounds(2, objective, observer);
  part.steps = std::max(1LL, problem.steps / 2);
  part.with_bounds = false;
  plan_result found = pipeline(part, objective, std::max(keep, tried), rounds.part());
  if (found.plans.empty() && found.status.result == outcome::none_found && problem.with_bounds) {
    if (auto proof = prove_infeasible(problem)) found.status = {outcome::infeasible, found.status.reason, std::move(proof)};
  }
  if (found.plans.empty() || (!found.status.ok() && !found.out_of_steps)) return named(std::move(found));

  planning_problem ordered = problem;
  job& j = ordered.job;
  if (j.orders.empty()) {
    j.orders = {order_rule::original, order_rule::automatic, order_rule::zb_v, order_rule::v_half, order_rule::v_min};
    j.only_orders = true;
  }
  return named(schedule::choose_orders(ordered, objective, std::move(found), keep, rounds.part()));
}

}  // namespace hetplan::recipes
