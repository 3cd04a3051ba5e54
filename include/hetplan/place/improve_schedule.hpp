// SPDX-License-Identifier: BSL-1.0
#pragma once
/// A better schedule from a given one: windows of operators are placed anew while the rest stays.

#include <cstddef>
#include <cstdint>

#include <hetplan/core/error.hpp>
#include <hetplan/core/observer.hpp>
#include <hetplan/place/operator_schedule.hpp>

namespace hetplan::place {

/// So many operators scheduled in a trial count as a step.
inline constexpr long long operators_per_step = 32;

struct improve_options {
  long long steps = standard_steps / 4;
  std::size_t largest_window = 1500;    ///< operators of a window; a smaller graph is one window
  std::size_t trials_per_operator = 8;  ///< of a window before the next one, where there are several
  std::uint64_t seed = 1;
};

/// A window has been placed anew, or a round of a graph that is one window is over; for progress and for stopping.
struct schedule_improved {
  double makespan_s = 0;  ///< of the best so far
  long long steps = 0;
};

/// Large-neighbourhood search. At first, with steps enough, the device with most work shares out what loses little elsewhere (share_out),
/// from everything on one device and from the best schedule. Then operators in the order of their starts are cut into windows that overlap
/// by half. In a window, devices change for a run of operators, a path, a neighbourhood, an island of one device, a branch between hubs, or
/// few operators for few others; the window is then scheduled by tails behind what is fixed before it, and what follows it keeps devices
/// and order: the trial's value estimates how long the whole becomes: transfers behind the window do not contend. Trials are accepted by a
/// falling threshold; a window's best is kept if the whole schedule, with insertion, is shorter.
///
/// @param start  within memory; where it holds no schedule it is the answer.
/// @return       never longer than `start`, within memory, with the bound of `start`.
/// Complexity    a trial costs the window's operators and edges, times log; a window's end one schedule_in_order of all.
/// Determinism   by the seed. The observer alone ends it sooner than the steps.
/// Source        ours. Thresholds: Dueck and Scheuer, "Threshold Accepting", J. Comp. Physics 1990. Moirai hands graphs
///               of every size to Gurobi.
[[nodiscard]] operator_schedule improve_schedule(const placement_table& t, const placement_rules& r, operator_schedule start,
                                                 const improve_options& options = {}, const any_observer<schedule_improved>& observer = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/improve_schedule.ipp>
#endif
