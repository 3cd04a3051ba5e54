// SPDX-License-Identifier: BSL-1.0
// expect: objective needs: double score(seconds response, joules energy) const, non-decreasing in both
#include <hetplan/recipes/pipeline.hpp>

using namespace hetplan;

struct my_objective {
  seconds score(const evaluation& e) const { return e.latency; }
};
plan_result wrong(const planning_problem& p) { return recipes::pipeline(p, my_objective{}); }
