// SPDX-License-Identifier: BSL-1.0
// expect: a planner needs: hetplan::plan_result operator()(const auto& problem) const
#include <hetplan/adapt/replanning.hpp>

using namespace hetplan;

struct my_planner {
  template <class Problem>
  plan operator()(const Problem& problem) const {
    return blank_plan(problem, "mine", 1);
  }
};
using my_problem = planning_problem;
auto ask(adapt::replanning<my_problem, my_planner>& r, const adapt::conditions& now) { return r(now, {}, {}); }
