// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/recipes/plan_placement.hpp>

#include <algorithm>
#include <string>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/stopwatch.hpp>
#include <hetplan/place/make_placement_table.hpp>
#include <hetplan/recipes/plan_on_view.hpp>

namespace HETPLAN_NAMESPACE::recipes {

namespace detail {

/// Why a job is none for placing operators; "": it is one.
[[nodiscard]] HETPLAN_INLINE std::string not_one_inference(const job& j, const std::string& planner) {
  if (j.workload.mode != mode::inference)
    return planner + " places the operators of one inference; the job is " + std::string(to_string(j.workload.mode));
  const auto& sizes = j.microbatch_sizes;
  if (!sizes.empty() && std::find(sizes.begin(), sizes.end(), j.batch) == sizes.end())
    return planner + " runs the batch in one piece; the job wants microbatches of other sizes than its batch of " + std::to_string(j.batch);
  return {};
}

}  // namespace detail

HETPLAN_INLINE plan_result plan_placement(const planning_problem& problem, const any_objective& objective, const char* planner,
                                          const placement_view& view, const placement_search& search, const candidate_observer& observer) {
  const stopwatch clock;
  if (std::string why = detail::not_one_inference(problem.job, planner); !why.empty())
    return {.status = {outcome::none_found, std::move(why)}, .elapsed = seconds(clock.elapsed_s())};
  const coarsen::blocks blocks = coarsen::fuse_operators(problem.model, view.fusion.value_or(coarsen::no_fusion()));
  const place::placement_table table = place::make_placement_table(problem, blocks);
  step_budget budget(problem.steps);
  const place::operator_schedule found = search(table, view.network, budget);
  budget.spend(found.steps);
  if (!found.found()) return {.status = found.status, .steps = found.steps, .elapsed = seconds(clock.elapsed_s())};
  plan_result answer =
      judge_choice(problem, objective, place::plan_of(problem, blocks, table, view.network, found, planner), budget, observer);
  if (!answer.plans.empty()) answer.plans.front().predicted->placement_bound = seconds(found.bound_s);
  if (answer.status.ok() && found.status.result == outcome::stopped) answer.status = found.status;
  answer.elapsed = seconds(clock.elapsed_s());
  return answer;
}

}  // namespace HETPLAN_NAMESPACE::recipes
