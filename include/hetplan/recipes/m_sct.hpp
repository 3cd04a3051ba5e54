// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-SCT: as m-ETF, and a favourite reader waits for its producer's device.

#include <hetplan/place/m_sct.hpp>
#include <hetplan/recipes/plan_placement.hpp>

namespace hetplan::recipes {

/// One inference, operator by operator; see place::m_sct.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020.
///         Deviations: see place/m_sct.hpp.
[[nodiscard]] inline plan_result m_sct(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  const auto search = [&problem](const place::placement_table& t, const place::placement_rules& r, long long,
                                 const place::operator_schedule&) { return place::m_sct(t, r, problem.lp); };
  return plan_placement(problem, objective, "m-sct", view, search, observer);
}

}  // namespace hetplan::recipes
