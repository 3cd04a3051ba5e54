// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The best schedule of a placement table that a budget allows, with what nothing can beat: the searches of this folder in turn.

#include <limits>

#include <hetplan/core/observer.hpp>
#include <hetplan/core/status.hpp>
#include <hetplan/place/improve_schedule.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/series_schedule.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// A quarter of the steps is for parts at sharp milestones, an eighth for each other way to cut, a quarter for improve_schedule; fewer
/// where the options of a search say so.
struct find_options {
  long long steps = standard_steps;
  series_search_options series = {.steps = std::numeric_limits<long long>::max()};
  improve_options improve = {.steps = std::numeric_limits<long long>::max()};
  any_lp_solver lp = {};         ///< for the relaxed programs of m-SCT, GETF and the bound of parts
  operator_schedule known = {};  ///< a schedule of the table, with its bound, to begin with; or none
};

/// The best of all list schedules, each of which tries one device alone, too; ties in this order: HEFT, PEFT, m-ETF, m-SCT, GETF.
///
/// @return  without a bound. Where none found one, HEFT's status.   Source  ours: list schedules cost little, and none is always the best.
[[nodiscard]] operator_schedule best_list_schedule(const placement_table& t, const placement_rules& r, const any_lp_solver& lp = {});

/// List schedules and bounds; then series_schedule, which proves optima of small graphs and of rows of small parts; then
/// improve_schedule for what they leave open.
///
/// @return      feasible, whether proven optimal (gap 0) or not; stopped: an observer said so. Infeasible: proven; none
///              found: a placement that fits may exist.
/// Complexity   by the budget; list schedules and bounds come on top, half a second for 50 000 operators, 3 s where ports contend.
/// Determinism  yes, unless an observer stops it.
/// Source       ours; Moirai hands the whole to Gurobi.
[[nodiscard]] operator_schedule find_schedule(const placement_table& t, const placement_rules& r, const find_options& options = {},
                                              const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/find_schedule.ipp>
#endif
