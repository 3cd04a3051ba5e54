// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: the_model_must_outlive_the_problem
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

planning_graph make_model();
planning_problem wrong(const cluster& c) { return {make_model(), c, roofline{}, {.batch = 16}}; }
