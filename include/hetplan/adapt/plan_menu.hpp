// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Many plans of one job from a planner of single ones: the fastest, the most frugal, and those between.

#include <hetplan/adapt/replanning.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::adapt {

/// Asks a planner for least latency, for least energy, and for least energy within latencies between these two, in equal
/// ratios; the answer is the Pareto set of all plans in (response, energy), fastest first. Where not even the fastest plan does
/// the job's iterations by its deadline, nobody is asked for more.
///
/// Complexity  2 + `between` calls of the planner, or one.
/// Source      Dora, section 4.3: "the QoE-compliant, Pareto-optimal plans generated earlier"; how many, and from which runs
///             of the search, is not said there.
struct plan_menu {
  any_planner planner;
  int between = 4;

  /// To 2^-20 of itself: libraries differ in the last digits of a power, and a search may not.
  [[nodiscard]] static double rounded(double x);

  [[nodiscard]] plan_result operator()(const planning_problem& problem) const;
};
}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/plan_menu.ipp>
#endif
