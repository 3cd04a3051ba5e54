// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plan mixing: the plans that run in a horizon, their order and their times, for a required amount of work at least energy.

#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::mix {

/// The work rate and the power of a plan. The caller chooses the unit of work: iterations, samples or tokens.
/// Source  Dora, section 4.3, eqs 7-8: r_p, e_p and d_p. Deviation: d_p is a table of pairs, and a switch also takes energy.
struct plan_rate {
  double rate = 0;     ///< work per second; a plan of rate 0 never runs
  double power_W = 0;  ///< power of all devices together while the plan runs

  friend bool operator==(const plan_rate&, const plan_rate&) = default;
};

/// The cost of starting a plan: a pause, in which the devices idle, and an energy in addition to the idle energy.
struct switch_cost {
  double pause_s = 0;
  double energy_J = 0;

  friend bool operator==(const switch_cost&, const switch_cost&) = default;
};

/// Switching costs between n plans, and from no plan to each of them; an empty table makes switches free.
///
/// The plan that ran last continues for free, also after idle time. The triangle inequality is expected: (a, c) costs no more
/// seconds and joules than (a, b) plus (b, c), as in tables of moved bytes. Detours are not searched.
struct switch_table {
  std::vector<switch_cost> between = {};  ///< n x n, row-major: from * n + to; the diagonal is not read
  std::vector<switch_cost> start = {};    ///< n, from no plan

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const;

  friend bool operator==(const switch_table&, const switch_table&) = default;
};

/// The candidate plans by index, their switching costs, and the power of all devices while no plan runs.
struct plan_rates {
  std::vector<plan_rate> plans = {};
  switch_table switches = {};
  double idle_W = 0;

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to) const { return switches.cost(from, to, plans.size()); }

  friend bool operator==(const plan_rates&, const plan_rates&) = default;
};

/// Throws invalid_input for a negative or non-finite number and for a table of the wrong size. O(n^2).
void check_plan_rates(const plan_rates& r);

/// Throws invalid_input unless `running` is empty or the index of a plan.
void check_running(const plan_rates& r, std::optional<std::size_t> running);

template <class C>
concept values_evaluation = requires(const C& c, const evaluation& e) {
  { c.value(e) } -> std::same_as<double>;  // smaller is better; not NaN; pure
};

/// A number by which evaluated plans are compared; smaller is better. An `objective` selects the best plan; criteria keep several plans
/// (`pareto_plans`) for a later decision.
///
/// * Any unit is allowed: only values of the same criterion are compared. Infinity means "never"; NaN throws `invalid_input`.
/// * `pareto_plans` keeps the plans that no other plan dominates. `hypervolume` measures the quality of such a set.
///
/// Ships: `response_time` [s], `total_energy` [J], `device_energy` of one device [J], `peak_memory` of the device with the largest peak
/// [B], `bytes_moved` over all resources [B].
///
/// Source  response time and energy: Dora, section 4.3 and Fig. 7; the others are ours.
template <class C>
concept criterion = values_evaluation<C>;

template <class C>
consteval bool check_criterion() {
  static_assert(values_evaluation<C>, "criterion needs: double value(const hetplan::evaluation&) const, smaller is better");
  return criterion<C>;
}

/// The latency T, or the time between tokens in generation [s].
struct response_time {
  [[nodiscard]] double value(const evaluation& e) const { return e.response().value(); }
};
/// Energy of all devices [J].
struct total_energy {
  [[nodiscard]] double value(const evaluation& e) const { return e.energy().value(); }
};
/// Energy of one device [J]. Throws invalid_input for a device outside the evaluation.
struct device_energy {
  device_id device;
  [[nodiscard]] double value(const evaluation& e) const;
};
/// Largest peak memory of a device [B].
struct peak_memory {
  [[nodiscard]] double value(const evaluation& e) const { return e.peak_memory().value(); }
};
/// Bytes over all resources [B]; a byte counts once for each resource that it crosses.
struct bytes_moved {
  [[nodiscard]] double value(const evaluation& e) const;
};

static_assert(check_criterion<response_time>() && check_criterion<total_energy>() && check_criterion<device_energy>() &&
              check_criterion<peak_memory>() && check_criterion<bytes_moved>());

/// The order of two plans in a mixture if neither is running. A running plan is always first.
///
/// `cheapest`: the order with the lower switching costs. `faster_first`: the faster plan first, whatever the switches cost. Early
/// work leaves slack: after a surprise, the slower plan at the end can still be replaced by a faster one.
enum class turn_order { cheapest, faster_first };

struct mixing_goal {
  double horizon_s = 0;
  double progress = 0;                                           ///< work to be done by the end of the horizon (EP)
  std::optional<std::size_t> running = {};                       ///< the plan that ran last; it continues without a switch
  double shortfall_J = std::numeric_limits<double>::infinity();  ///< price per unit of work not done; infinite: least shortfall first
  turn_order order = turn_order::cheapest;
};

/// The turn of a plan: a switching pause, then `seconds` of work.
struct mixture_part {
  std::size_t plan = 0;
  double pause_s = 0;
  double seconds = 0;

  friend bool operator==(const mixture_part&, const mixture_part&) = default;
};

/// How `uniform_progress` executes a mixture.
///
/// `open_loop`: the parts run in order. The controller is called again after the last part, at the start of a new horizon, when a
/// plan of the mixture can no longer run, and after a turn of the reserve. `receding_horizon`: only the first part starts. The
/// controller is called again at every decision, so deviations are corrected at once.
enum class mixture_control { open_loop, receding_horizon };

/// The parts of a horizon in order of execution, followed by idle time; together they fill the horizon.
struct mixture {
  hetplan::status status = {};  ///< infeasible: no time is left but work is; the message says since when
  std::vector<mixture_part> parts = {};
  double idle_s = 0;
  double progress = 0;                                   ///< promised work
  double shortfall = 0;                                  ///< required work that is not promised
  double energy_J = 0;                                   ///< energy of the whole horizon, idle time included
  double objective = 0;                                  ///< energy plus priced shortfall; the energy alone if the price is infinite
  mixture_control control = mixture_control::open_loop;  ///< `mix`, `mix_on_hull` and `mix_relaxed` set the receding horizon
};

/// Throws invalid_input for bad rates (check_plan_rates) and for a goal with NaN, an infinite horizon, a negative progress or
/// price, or an unknown plan. A horizon <= 0 is reported as a status, not as an error: deadlines pass.
void check_mixing(const plan_rates& rates, const mixing_goal& goal);

namespace detail {

/// Returns the objective of a mixture (`mixture::objective`).
[[nodiscard]] double priced(double energy_J, double shortfall, double shortfall_J);

[[nodiscard]] mixture mixture_without_time(const mixing_goal& goal);

}  // namespace detail

/// Returns the best mixture with a fixed cost per switch, however short the turn: progress = sum of rate * (time - pause).
///
/// Two plans are enough. For a given sequence of plans the pauses are fixed, and the rest is a linear program. Its variables are
/// the seconds of work of each plan, the idle seconds and the shortfall. Its two equations fill the rest of the horizon and set
/// progress plus shortfall to the required work. An optimal vertex has at most two nonzero variables: two working plans, or one
/// with idle time or shortfall. Plans that do not work are left out: their pauses become idle time at the same power (triangle
/// inequality of `switch_table`). The running plan, if it works, comes first, where it is free. So every support of one or two
/// plans in either order (unless `order` decides) is tried in closed form.
///
/// Idle time comes last, as slack for late surprises. With an infinite `shortfall_J` (the paper's constraint, eq 8) the least
/// shortfall comes first, and energy breaks ties. If no plan can do the work in time, the status is still ok and `shortfall` > 0.
///
/// Units        as in the field names; energy includes idle_W during idle time and pauses.
/// Complexity   O(n^2) for n plans, also for checking the table; allocates only the parts of the result.
/// Throws       invalid_input (check_mixing).
/// Determinism  ties within 1e-12: fewer switches, then fewer plans, then smaller indices, then the faster plan first.
/// Source       Dora, section 4.3, eqs 7-8. Deviations: switching costs are fixed per switch and depend on both plans; the paper
///              charges them in proportion to a plan's share (mixing_program). Work beyond the goal is impossible, not free, which
///              differs only if a plan draws less power than idling.
[[nodiscard]] mixture mix(const plan_rates& rates, const mixing_goal& goal);

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/mixing.ipp>
#endif
