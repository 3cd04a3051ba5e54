// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Improvement of a schedule by large-neighbourhood search: windows of operators are placed anew while the rest stays.

#include <cstddef>
#include <cstdint>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/place/operator_schedule.hpp>

namespace hetplan::place {

/// Number of operators scheduled in trials that counts as one step.
inline constexpr long long operators_per_step = 32;

struct improve_options {
  long long steps = standard_steps / 4;
  std::size_t largest_window = 1500;    ///< operators of a window; a smaller graph is one window
  std::size_t trials_per_operator = 8;  ///< trials of a window before the next one, if there are several
  std::uint64_t seed = 1;
};

/// Event after a window, or after a round of a graph that is one window; for progress and for stopping.
struct schedule_improved {
  double makespan_s = 0;  ///< best so far
  long long steps = 0;
};

/// Improves a schedule by large-neighbourhood search. At first, with steps enough, the most loaded device gives away operators that lose
/// little elsewhere (share_out), both from everything on one device and from the best schedule. Then the operators in the order of their
/// starts are cut into windows that overlap by half. A trial changes the devices of a run of operators, a path, a neighbourhood, an
/// island of one device or a branch between hubs, or swaps few operators for few others. The window is then scheduled by tails behind the
/// fixed operators before it; those behind it keep devices and order. The trial's value estimates the makespan, without contention
/// behind the window. Trials are accepted by a falling threshold. A window's best is kept if the whole schedule, with insertion, shortens.
///
/// @param start  within memory; returned as it is if it holds no schedule.
/// @return       never longer than `start`, within memory, with the bound of `start`.
/// Complexity    a trial costs the window's operators and edges, times log; a window's end one schedule_in_order of all.
/// Determinism   by the seed, unless the observer stops it. Ends early at the bound, or after four rounds of several windows in vain.
/// Source        ours. Thresholds: Dueck and Scheuer, "Threshold Accepting", J. Comp. Physics 1990. Moirai gives all graphs to Gurobi.
[[nodiscard]] operator_schedule improve_schedule(const placement_table& t, const placement_rules& r, operator_schedule start,
                                                 const improve_options& options = {}, const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/improve_schedule.ipp>
#endif
