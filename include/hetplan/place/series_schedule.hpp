// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A schedule and a bound part by part: dynamic programming over the devices of the milestones between the parts.

#include <hetplan/core/observer.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/known_parts.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/series_parts.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Every part is scheduled and bounded for each pair of devices that the milestones around it may have; parts that are the same, once.
/// Two shortest paths through those pairs are the schedule and the bound. Parts on the path of the bound are searched again, with more
/// and more steps, until the two meet or the steps end. Where memory binds, prices of the devices' bytes choose (price_memory.hpp), and
/// with a solver they tighten the bound.
///
/// @return      the schedule and a bound on every schedule of the table; none found where no path of parts was found that keeps
///              memory. Infeasible, with an infinite bound: proven that there is none. Under contention::shared the bound holds
///              for any way to share. Proven optimal where the parts are exact, memory does not bind and the parts are small.
/// Complexity   parts x devices^2 beside the searches.
/// Determinism  yes, unless the observer stops it.
/// Source       ours.
[[nodiscard]] operator_schedule series_schedule(const placement_table& t, const placement_rules& r, const series_parts& parts,
                                                const series_search_options& options = {},
                                                const any_observer<schedule_improved>& observer = {});

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/series_schedule.ipp>
#endif
