// SPDX-License-Identifier: BSL-1.0
#pragma once
/// GETF: a group of like devices for each operator by a relaxed program, then the earliest start within the group.

#include <cstddef>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/solve/any_lp_solver.hpp>

namespace hetplan::place {

/// Devices that take the same time for every operator are a group; groups are numbered by their first device.
///
/// @return  by device.   Complexity  O(operators x devices^2).   Source  GETF's groups of equal speed, for devices that are not related.
[[nodiscard]] std::vector<std::size_t> device_groups(const placement_table& t);

/// The group of each operator. The relaxed program shares every operator out over the groups, so that neither the load of a device nor the
/// longest path exceeds a least T. Rounded, restated for unlike devices: groups by an operator's time, fastest first; the operator goes
/// to the last group of those that hold the first half of its share, so its time is at most twice that of its shares.
/// Without solver, or for more than `most` operators times groups, every operator goes where its time, weighted by the group's
/// price, is least; prices rise by rounds for the group with most load.
///
/// Complexity  the program: operators x (groups + 1) columns, 3 operators + edges + groups rows; without: O(rounds x operators x groups).
/// Source      Su, Vardi, Ren, Wierman, "Communication-Aware Scheduling of Precedence-Constrained Tasks on Related Machines", 2020,
///             section 3 (the program and its rounding by speeds).
[[nodiscard]] std::vector<std::size_t> operator_groups(const placement_table& t, const any_lp_solver& lp = {}, std::size_t most = 1500);

/// Generalized earliest time first.
///
/// Source  as operator_groups. Deviations: memory, insertion, a group that has no room or no route gives way to another, and one device
/// where
///         that is shorter.
[[nodiscard]] operator_schedule getf(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/getf.ipp>
#endif
