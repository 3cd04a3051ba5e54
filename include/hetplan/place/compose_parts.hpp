// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Schedules of parts as a schedule of the whole.

#include <vector>

#include <hetplan/place/known_parts.hpp>
#include <hetplan/place/operator_schedule.hpp>

namespace HETPLAN_NAMESPACE::place {

/// The parts of a path one after the other; operators beside them are on no device yet, and transfers are left out where there are such,
/// or edges that pass milestones by.
///
/// Complexity  O((operators + edges) log operators).
/// Source      ours: between milestones the makespan is a sum (series_parts.hpp).
[[nodiscard]] operator_schedule compose_parts(const known_parts& known, const part_path& path);

/// A schedule of all operators: that of compose_parts, or, where operators or edges are beside the parts, one in the order of the parts'
/// starts, with the operators beside them where they end first.
///
/// Complexity  schedule_greedily's.
/// Source      ours: a list schedule (list_schedule.hpp) by the order that the parts were solved in.
[[nodiscard]] operator_schedule schedule_sides(const known_parts& known, const operator_schedule& parts);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/compose_parts.ipp>
#endif
