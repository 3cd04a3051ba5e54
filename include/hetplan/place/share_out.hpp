// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Work for idle devices: operators that lose little elsewhere leave the fullest one together.

#include <cstddef>

#include <hetplan/place/operator_schedule.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Schedules that share_out tries in a round, and its rounds.
inline constexpr std::size_t share_out_levels = 16, share_out_rounds = 4;

/// Operators of the device with most work go wherever most room is, those first whose longest transfers delay them least: more and more of
/// them, until that is no better any more. A round from everything on one device, then rounds from the best. Moves of single operators do
/// not come that far where hundreds are independent of each other.
///
/// @param base   a schedule of the table.
/// @param tried  counts the schedules that were made.
/// @return       the best of them where it is shorter than `base`; else `base`. Within memory where `base` is.
/// Complexity    levels x rounds times schedule_in_order, and O(edges x devices + operators x devices x levels) a round.
/// Source        ours; longest first to where it ends first: Graham, "Bounds on Multiprocessing Timing Anomalies", 1969.
[[nodiscard]] operator_schedule share_out(const placement_table& t, const placement_rules& r, operator_schedule base, long long& tried);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/share_out.ipp>
#endif
