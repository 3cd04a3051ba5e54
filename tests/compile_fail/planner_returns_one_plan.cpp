// SPDX-License-Identifier: BSL-1.0
// expect: a planner needs: hetplan::plan_result operator()(const hetplan::planning_problem&) const
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/plan/plan.hpp>

using namespace hetplan;

struct my_planner {
  plan operator()(const planning_problem& problem) const { return blank_plan(problem, "mine", 1); }
};
auto ask(const planning_problem& problem) { return adapt::replanning(problem, my_planner{}); }
