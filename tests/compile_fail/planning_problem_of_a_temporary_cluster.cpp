// SPDX-License-Identifier: BSL-1.0
// expect: deleted
// expect: the_cluster_must_outlive_the_problem
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/problem/planning_problem.hpp>

using namespace hetplan;

const cluster make_cluster();
planning_problem wrong(const planning_graph& g) { return {g, make_cluster(), roofline{}, {.batch = 16}}; }
