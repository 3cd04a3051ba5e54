// SPDX-License-Identifier: BSL-1.0
// expect: observer needs: hetplan::control operator()(const Event&) for an event of this call
#include <hetplan/recipes/pipeline.hpp>

using namespace hetplan;

plan_result wrong(const planning_problem& p) {
  return recipes::pipeline(p, minimize_latency{}, 10, [](const candidate_judged& c) { return c.judged < 100; });
}
