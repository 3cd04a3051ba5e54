// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who fills a horizon with turns of plans: the door for mixing controllers, and the ones that ship.

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/mixing.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::mix {

// The least power at which plans, mixed without switching costs, work at a given rate; and the price of work.

/// The lower convex hull of (rate, power) of plans and of idling, from idling to the fastest plan.
///
/// Every rate on it is a mixture of the two neighbouring corners. Prices, the slopes, rise along it. Of plans with the same
/// rate the one with the least power counts, then the smallest index; plans of rate 0 are left out.
///
/// Complexity  O(n log n) to build, O(log n) per question.
/// Throws      invalid_input (check_plan_rates).
/// Source      the closed form of Dora's eqs 7-8 without switching costs: an LP with these two rows has its answer on the
///             hull of the columns.
class rate_hull {
 public:
  struct corner {
    std::optional<std::size_t> plan;  ///< none: idling
    double rate = 0;
    double power_W = 0;
  };

  explicit rate_hull(const plan_rates& rates);

  [[nodiscard]] const std::vector<corner>& corners() const { return corners_; }
  [[nodiscard]] double fastest() const { return corners_.back().rate; }
  /// Joules per unit of work between corners k and k + 1, beyond what idling takes.
  [[nodiscard]] double slope(std::size_t k) const;
  /// The corner before which a rate in [0, fastest] lies: rate(k) < rate <= rate(k + 1); 0 for 0.
  [[nodiscard]] std::size_t segment(double rate) const;
  /// Least power of a mixture that works at `rate`; infinite beyond the fastest.
  [[nodiscard]] double power_W(double rate) const;
  /// What the last unit of work costs at a rate [J]: of the first segment at 0, infinite beyond the fastest or without plans.
  [[nodiscard]] double price_J(double rate) const;

 private:
  void build(const std::vector<plan_rate>& plans, double idle_W);
  /// b is on the line from a to c or above it.
  static bool above(const corner& a, const corner& b, const corner& c);

  std::vector<corner> corners_ = {};
};

/// The best mixture when switching is free, off the hull: the two corners beside the average rate asked for, the faster
/// first unless the slower one runs. Work that costs more than `shortfall_J` is left undone.
///
/// Complexity  O(n log n).
/// Throws      invalid_input (check_mixing); the table of switching costs is not read.
/// Source      Dora, section 4.3, eqs 7-8 with d = 0, in closed form.
[[nodiscard]] mixture mix_on_hull(const plan_rates& rates, const mixing_goal& goal);

// Plan mixing as the paper's linear program: switching is charged in proportion to a plan's share of the horizon, which
// bounds what it costs in truth.

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

// What a job costs at least: for one who knows every plan's rate in every future period and switches for free.

/// A stretch of time in which rates and powers stay as they are; `rates.switches` is not read.
struct rate_period {
  double seconds = 0;
  plan_rates rates = {};
};

/// No way to run a job takes less energy, or does more of it.
struct clairvoyant_bound {
  hetplan::status status = {};  ///< infeasible: nobody could do the work in these periods
  double energy_J = 0;          ///< until the end of the last period, idling included
  double progress = 0;
  double shortfall = 0;
  double price_J = 0;  ///< of the last unit of work, beyond idling; 0 without work
};

/// The least energy to do `work` in the given periods, which end at the deadline.
///
/// In each period the least power at an average rate is the hull of the plans there (rate_hull), which is convex; so the
/// cheapest pieces of all hulls are bought first, until the work is done: a fractional knapsack with several choices,
/// exact, and the last piece's slope is the price of work. Where the work cannot be done, everything is bought.
///
/// Complexity   O(T n log n) for T periods of n plans.
/// Throws       invalid_input for work or seconds that are negative or not finite, and bad rates (check_plan_rates).
/// Determinism  pieces of one price: the earlier period first; only sums depend on it, in the last digits.
/// Source       the linear program of Dora's eqs 7-8 over all periods at once, without switching costs.
[[nodiscard]] clairvoyant_bound clairvoyant(std::span<const rate_period> periods, double work);

/// A callable that says which plans run in a horizon, in which order and for how long. Pure.
///
/// * A `mixture` is parts, each a plan with the seconds of switching to it and of its work, then idling. Together they take no longer
///   than the horizon; plans are subscripts of rates.plans. What is not so throws `invalid_model`.
/// * `progress` and `energy_J` are what the controller promises; nobody adds them up again.
/// * `uniform_progress` and `mixing_policy` carry the parts out in order. They ask again when the parts are through, when a new horizon
///   begins, when one of the plans can run no more and after the reserve has taken a turn; `mixing_policy` also after a large change.
/// * With `mixture::control` = `receding_horizon`, as those that ship have it, the controller is asked at every decision, for what is left
///   of the horizon, and only the first part begins.
/// * The running plan, goal.running, goes on without a switch. `uniform_progress` asks for `turn_order::faster_first` and keeps its
///   reserve over any controller.
///
/// Ships: `exact_mixing` (the default), `hull_mixing` (where switching is free), `program_mixing` (Dora's linear program, by an
/// `lp_solver`), `any_mixing_controller` (chosen at run time).
///
/// Source  Dora, section 4.3, whose linear program is one model of it; the door is our own.
template <class C>
concept mixing_controller = requires(const C& c, const plan_rates& rates, const mixing_goal& goal) {
  { c(rates, goal) } -> std::same_as<mixture>;
};

template <class C>
consteval bool check_mixing_controller() {
  static_assert(mixing_controller<C>,
                "mixing_controller needs: hetplan::mix::mixture operator()(const hetplan::mix::plan_rates&, const "
                "hetplan::mix::mixing_goal&) const");
  return mixing_controller<C>;
}

/// hetplan::mix::mix: what a switch costs, it costs however short the turn.
struct exact_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix(rates, goal); }
};
/// mix_on_hull: switching is free.
struct hull_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix_on_hull(rates, goal); }
};
/// mix_relaxed: the paper's linear program, switching in proportion to a plan's share.
struct program_mixing {
  any_lp_solver solver = {};  ///< without one it throws invalid_input
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const;
};

/// Holds any controller by value; what it answers is checked. Of an empty one: invalid_input.
///
/// Complexity  that of the controller, and O(parts) for the check. Determinism: as the controller's.
class any_mixing_controller {
 public:
  template <class C>
    requires(!std::same_as<C, any_mixing_controller>)
  any_mixing_controller(C c) {
    static_assert(check_mixing_controller<C>());
    if constexpr (mixing_controller<C>) mix_ = std::move(c);
    require_function(mix_, "any_mixing_controller", "a mixing controller, such as exact_mixing{}");
  }

  /// Throws  invalid_input (check_mixing); invalid_model where an answer names a plan that is none, or a time that is negative or no
  ///         number, or where its parts and its idling take longer than the horizon.
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const;

 private:
  std::function<mixture(const plan_rates&, const mixing_goal&)> mix_;
};

static_assert(check_mixing_controller<exact_mixing>() && check_mixing_controller<hull_mixing>() &&
              check_mixing_controller<program_mixing>() && check_mixing_controller<any_mixing_controller>());

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/mixing_controller.ipp>
#endif
