// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plan mixing as the paper's linear program: switching is charged in proportion to a plan's share of the horizon, which
/// bounds what it costs in truth.

#include <cstddef>
#include <optional>

#include <hetplan/mix/mixing.hpp>
#include <hetplan/solve/any_lp_solver.hpp>

namespace hetplan::mix {

/// The least seconds and the least joules to get into a plan from any other or from what runs: 0 for the running plan.
[[nodiscard]] switch_cost least_switch_cost(const plan_rates& rates, std::optional<std::size_t> running, std::size_t to);

/// Eqs 7-8. Columns: the share x of the horizon of each plan by index, that of idling, and the shortfall. Rows: progress,
/// and the shares, which sum to 1.
///
///   minimize    sum over plans of x_p (e_p (H - d_p) + idle d_p + J_p) + x_idle idle H + lambda z
///   subject to  sum of r_p (H - d_p) x_p + z = EP,   sum of x = 1,   x, z >= 0
///
/// with d_p, J_p the least switching cost into p. Its optimum is at most that of any sequence of turns, each plan having at
/// most one (so also `mix`'s), whatever the table: w_p seconds of work there are x_p = w_p / (H - d_p) <= 1 here, which
/// take x_p H <= w_p + d_p of the horizon and J_p x_p <= J_p, and the rest idles at the power at which pauses are counted.
/// With an infinite price z is fixed to 0: then it bounds mixtures without shortfall, and is infeasible if there are none.
///
/// Complexity  O(n^2).
/// Throws      invalid_input (check_mixing), and for a horizon <= 0.
/// Source      Dora, section 4.3, eqs 7-8. Deviations: idling and a shortfall are columns; pauses draw idle power and what
///             the switch itself takes; "=" for ">=" (see mix).
[[nodiscard]] lp_problem mixing_program(const plan_rates& rates, const mixing_goal& goal);

/// What the linear program promises: a lower bound for `mix`, and more than a device can hold where switching costs.
/// Parts: the running plan first, then by index; shares below 1e-12 are left out.
///
/// Status      infeasible: no time is left, or with an infinite price no mixture does the work; stopped: the solver has no
///             answer.
/// Complexity  O(n^2) and the solver's.
/// Throws      invalid_input (check_mixing).
/// Source      Dora, section 4.3, eqs 7-8.
[[nodiscard]] mixture mix_relaxed(const plan_rates& rates, const mixing_goal& goal, const any_lp_solver& solver);

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/mixing_program.ipp>
#endif
