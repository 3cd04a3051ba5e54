// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-SCT: as m-ETF, and each operator may have a favourite reader that is to follow it on its device.

#include <cstddef>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/solve/any_lp_solver.hpp>

namespace hetplan::place {

inline constexpr std::size_t no_operator = ~std::size_t{0};

/// The favourite reader of each operator: at most one each, and an operator is the favourite of at most one.
///
/// The relaxed program: an edge whose x is 0 costs no transfer, each operator has at most one such edge out and one in, and the longest
/// path with least times and mean transfers is shortest. Edges with x <= 1/2, the smallest first, become favourites as long as both ends
/// are free: that is the repair, for at 1/2 two of them may share an end. Without solver, or for more edges than `most_edges`, edges by the
/// length of the longest way through them take its place.
///
/// @return     by operator: its favourite reader, or no_operator.
/// Complexity  the program: operators + edges columns, 3 operators + edges rows at most. Without: O(edges x (log edges + devices^2)).
/// Source      Hanen and Munier, 1995 (SCT); Jeon et al., SoCC 2020, section 3.2 (its relaxed program).
[[nodiscard]] std::vector<std::size_t> favourite_readers(const placement_table& t, const any_lp_solver& lp = {},
                                                         std::size_t most_edges = 3000);

/// Memory-constrained small communication times: where an operator has a favourite reader that is not placed yet, its device takes
/// another one only as late as the favourite could start elsewhere.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.2. Deviations: as m_etf's; the
///         time that a device waits is the mean transfer of that edge.
[[nodiscard]] operator_schedule m_sct(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/m_sct.ipp>
#endif
