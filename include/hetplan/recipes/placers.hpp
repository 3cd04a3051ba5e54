// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placement of the operators of one inference: GETF, HEFT, m-ETF and m-SCT.

#include <functional>
#include <optional>

#include <hetplan/coarsen/fuse_operators.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::recipes {

/// Grouping of operators, and network rules of their transfers.
struct placement_view {
  std::optional<coarsen::fusion_rules> fusion = {};  ///< rules by which operators may be fused; none: the planner's default
  place::placement_rules network = {place::contention::shared, transfer_copies::per_device};
};

/// Finds a schedule of a table under its rules within a number of steps. `known` may serve as a start; it is empty if none is known.
using placement_search = std::function<place::operator_schedule(const place::placement_table&, const place::placement_rules&,
                                                                long long steps, place::operator_schedule known)>;

/// Places the operators of one inference by a search and judges the plan on the cluster as it is. All samples of the batch run at once,
/// each group of operators is a stage, and transfers are released as scheduled.
///
/// If the view's rules fuse operators, the search first places the fused operators, with half of the steps, and then single operators from
/// there. The better plan is the answer, the fused one on a tie. So fusion never makes a feasible problem infeasible.
///
/// @return      one plan, with the search's bound for single operators. The bound also holds for fused operators, which take no less time
///              together. If every edge is sent separately and transfers contend, one transfer may serve two fused operators; the lower of
///              both bounds then counts. none_found: the job is no inference or excludes a single batch, the search found no schedule, or
///              its plan breaks a limit of a device. infeasible if the search proves it.
/// Complexity   make_placement_table, the search, and one simulation; all of them twice if operators are fused.
/// Throws       invalid_input (no search); invalid_model (a user's model violates its concept).
/// Source       ours; each recipe cites its planner's paper.
[[nodiscard]] plan_result plan_placement(const planning_problem& problem, const any_objective& objective, const char* planner,
                                         const placement_view& view, const placement_search& search,
                                         const candidate_observer& observer = {});

/// GETF on one inference: a relaxed program chooses a group of devices per operator, then the earliest start within it; see place::getf.
/// Source  Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020. Deviations:
///         see place/list_schedule.hpp.
[[nodiscard]] inline plan_result getf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  return plan_placement(
      problem, objective, "getf", view, [&problem](auto& t, auto& r, auto&&...) { return place::getf(t, r, problem.lp); }, observer);
}

/// HEFT on one inference: operators by upward rank, each on the device with the earliest finish; see place::heft.
/// Source  Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling", TPDS 2002. Deviations: memory and contention.
[[nodiscard]] inline plan_result heft(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  return plan_placement(
      problem, objective, "heft", view, [](auto& t, auto& r, auto&&...) { return place::heft(t, r); }, observer);
}

/// m-ETF on one inference: of all ready operators, the one with the earliest start within memory; see place::m_etf.
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020. Deviations: see place/list_schedule.hpp.
[[nodiscard]] inline plan_result m_etf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  return plan_placement(
      problem, objective, "m-etf", view, [](auto& t, auto& r, auto&&...) { return place::m_etf(t, r); }, observer);
}

/// m-SCT on one inference: as m-ETF, but a favourite reader waits for its producer's device; see place::m_sct.
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020. Deviations: see place/list_schedule.hpp.
[[nodiscard]] inline plan_result m_sct(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  return plan_placement(
      problem, objective, "m-sct", view, [&problem](auto& t, auto& r, auto&&...) { return place::m_sct(t, r, problem.lp); }, observer);
}

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/placers.ipp>
#endif
