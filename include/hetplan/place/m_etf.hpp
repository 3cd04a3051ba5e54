// SPDX-License-Identifier: BSL-1.0
#pragma once
/// m-ETF: of all operators that are ready, the one that can start first, within memory.

#include <functional>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace hetplan::place {

/// Seconds from which an operator that could start on a device at `at` is taken to start there: what the rules that m-ETF, m-SCT and
/// GETF have beside each other come down to. Infinite: not there, as long as there is another device.
using start_rule = std::function<double(std::size_t op, std::size_t device, const trial& at, const partial_schedule& so_far)>;

/// Takes the pair of ready operator and device whose start is least, again and again; memory first. Of more than 128 operators that are
/// ready, those with the highest upward rank are compared; of fewer where operators have many in-edges or are more than 10 000.
///
/// A heap holds an old start of every ready operator; the least is asked again before it is believed. A start that has fallen meanwhile
/// (a favourite was placed, a device ran full, another reader fetched the data) is seen when its turn comes.
///
/// @param starts  none: when it could start.
/// @return        see schedule_greedily.
/// Complexity     O(operators x (log + devices x in-edges)), and as much for every start that has grown meanwhile: 128 times at most.
/// Determinism    ties: the higher upward rank, the smaller operator; the earlier end, the smaller device.
/// Source         ours, for the three.
[[nodiscard]] operator_schedule earliest_start_first(const placement_table& t, const placement_rules& r, const start_rule& starts = {});

/// Memory-constrained earliest task first.
///
/// Source  Jeon et al., "Baechi: Fast Device Placement of Machine Learning Graphs", SoCC 2020, section 3.1; ETF: Hwang et al., 1989.
///         Deviations: insertion, devices that differ, transfers that contend, a repair where memory runs out, and one device where
///         that is shorter.
[[nodiscard]] operator_schedule m_etf(const placement_table& t, const placement_rules& r);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/m_etf.ipp>
#endif
