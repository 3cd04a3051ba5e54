// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What every answer of a planner keeps.

#include <limits>

#include <catch2/catch.hpp>

#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/simulate/evaluate.hpp>

namespace hetplan::test {

/// What every feasible answer must be: valid, within limits, best first, and as predicted when judged again.
template <class Problem, class Objective>
void require_sound(const plan_result& r, const Problem& problem, const Objective& objective) {
  REQUIRE(r.status.ok());
  REQUIRE_FALSE(r.plans.empty());
  double before = -std::numeric_limits<double>::infinity();
  for (const auto& [p, e] : r.plans) {
    REQUIRE_FALSE(validate(p, problem.model, problem.cluster));
    const evaluation again = evaluate(p, problem.model, problem.cluster, problem.cost, problem.models, problem.lp).evaluation;
    REQUIRE(again == e);
    REQUIRE_FALSE(find_broken_limit(again, problem.cluster));
    REQUIRE(score(objective, again) >= before);
    before = score(objective, again);
  }
}

}  // namespace hetplan::test
