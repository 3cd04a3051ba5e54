// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-SCT: as m-ETF, and a favourite reader waits for its producer's device.

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

// What planners of single operators have in common: they place the operators of one inference and have one answer.

/// How operators are grouped, and how their transfers share the network.
struct placement_view {
  std::optional<coarsen::fusion_rules> fusion = {};  ///< operators of a rule may stay together; none: as the planner has it
  place::placement_rules network = {place::contention::shared, transfer_copies::per_device};
};

/// Finds a schedule of a table under its rules, within so many steps. A schedule that is known may be a start; it holds none where there
/// is none.
using placement_search = std::function<place::operator_schedule(const place::placement_table&, const place::placement_rules&,
                                                                long long steps, place::operator_schedule known)>;

/// The operators of one inference placed by a search and judged on the cluster as it is: all samples of the batch at once, a stage for
/// each group of operators, transfers released as the schedule starts them.
///
/// Where a rule of the view fuses any, the search places the fused operators first, with half of the steps, and then every operator alone
/// from there; the better plan is the answer, fused on a tie. So fusing never makes infeasible what fits apart.
///
/// @return      one plan, with the search's bound for every operator alone: fused operators take no less time together, so that it is one
///              for them, too. Where every edge is sent by itself and transfers contend, one transfer may serve two fused operators:
///              there the lower of both bounds counts. None found: the job is no inference or does not want its batch in one piece, the
///              search found no schedule, or its plan breaks a limit of a device; infeasible where the search proves it.
/// Complexity   make_placement_table, the search, and one simulation; all of them twice where operators are fused.
/// Throws       invalid_input (no search); invalid_model (a user's model misbehaves).
/// Source       ours; the planners' own papers stand in their recipes.
[[nodiscard]] plan_result plan_placement(const planning_problem& problem, const any_objective& objective, const char* planner,
                                         const placement_view& view, const placement_search& search,
                                         const candidate_observer& observer = {});

// GETF: a group of devices for each operator by a relaxed program, then the earliest start within it.

/// One inference, operator by operator; see place::getf.
///
/// Source  Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020.
///         Deviations: see place/list_schedule.hpp.
[[nodiscard]] inline plan_result getf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  const auto search = [&problem](const place::placement_table& t, const place::placement_rules& r, long long,
                                 const place::operator_schedule&) { return place::getf(t, r, problem.lp); };
  return plan_placement(problem, objective, "getf", view, search, observer);
}

// HEFT: operators by upward rank, each on the device where it ends first.

/// One inference, operator by operator; see place::heft.
///
/// Source  Topcuoglu, Hariri, Wu, "Performance-Effective and Low-Complexity Task Scheduling", TPDS 2002. Deviations: memory, and
///         transfers that contend.
[[nodiscard]] inline plan_result heft(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                      const candidate_observer& observer = {}) {
  const auto search = [](const place::placement_table& t, const place::placement_rules& r, long long, const place::operator_schedule&) {
    return place::heft(t, r);
  };
  return plan_placement(problem, objective, "heft", view, search, observer);
}

// m-ETF: of all operators that are ready, the one that can start first, within memory.

/// One inference, operator by operator; see place::m_etf.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020.
///         Deviations: see place/list_schedule.hpp.
[[nodiscard]] inline plan_result m_etf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  const auto search = [](const place::placement_table& t, const place::placement_rules& r, long long, const place::operator_schedule&) {
    return place::m_etf(t, r);
  };
  return plan_placement(problem, objective, "m-etf", view, search, observer);
}

/// One inference, operator by operator; see place::m_sct.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020.
///         Deviations: see place/list_schedule.hpp.
[[nodiscard]] inline plan_result m_sct(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  const auto search = [&problem](const place::placement_table& t, const place::placement_rules& r, long long,
                                 const place::operator_schedule&) { return place::m_sct(t, r, problem.lp); };
  return plan_placement(problem, objective, "m-sct", view, search, observer);
}

}  // namespace hetplan::recipes

#ifndef HETPLAN_SEPARATE
#include <hetplan/recipes/placers.ipp>
#endif
