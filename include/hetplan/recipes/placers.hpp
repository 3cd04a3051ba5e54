// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-SCT: as m-ETF, and a favourite reader waits for its producer's device.

#include <hetplan/place/list_schedule.hpp>
#include <hetplan/recipes/plan_placement.hpp>

namespace hetplan::recipes {

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
