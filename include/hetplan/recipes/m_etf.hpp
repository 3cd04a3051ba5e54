// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-ETF: of all operators that are ready, the one that can start first, within memory.

#include <hetplan/place/m_etf.hpp>
#include <hetplan/recipes/plan_placement.hpp>

namespace hetplan::recipes {

/// One inference, operator by operator; see place::m_etf.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020.
///         Deviations: see place/m_etf.hpp.
[[nodiscard]] inline plan_result m_etf(const planning_problem& problem, const any_objective& objective, const placement_view& view = {},
                                       const candidate_observer& observer = {}) {
  const auto search = [](const place::placement_table& t, const place::placement_rules& r, long long, const place::operator_schedule&) {
    return place::m_etf(t, r);
  };
  return plan_placement(problem, objective, "m-etf", view, search, observer);
}

}  // namespace hetplan::recipes
