// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Mixing controllers, which fill a horizon with turns of plans, and lower bounds on the energy of mixtures.

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

/// The lower convex hull of the points (rate, power) of idling and the plans, from idling to the fastest plan.
///
/// Every rate on the hull is a mixture of the two adjacent corners. The slopes are prices of work and rise along the hull. Of plans
/// with equal rates the one with the least power counts, then the smallest index; plans of rate 0 are left out.
///
/// Complexity  O(n log n) to build, O(log n) per query.
/// Throws      invalid_input (check_plan_rates).
/// Source      closed form of Dora's eqs 7-8 without switching: an LP with two rows has its optimum on the hull of its columns.
class rate_hull {
 public:
  struct corner {
    std::optional<std::size_t> plan;  ///< empty: idling
    double rate = 0;
    double power_W = 0;
  };

  explicit rate_hull(const plan_rates& rates);

  [[nodiscard]] const std::vector<corner>& corners() const { return corners_; }
  [[nodiscard]] double fastest() const { return corners_.back().rate; }
  /// Returns the price of work between corners k and k + 1, in joules per unit beyond the idle energy.
  [[nodiscard]] double slope(std::size_t k) const;
  /// Returns the corner k below a rate in [0, fastest]: rate(k) < rate <= rate(k + 1); 0 for rate 0.
  [[nodiscard]] std::size_t segment(double rate) const;
  /// Returns the least power of a mixture with average rate `rate`; infinite beyond the fastest plan.
  [[nodiscard]] double power_W(double rate) const;
  /// Returns the price of the last unit of work at `rate` [J]; infinite beyond the fastest plan or without plans.
  [[nodiscard]] double price_J(double rate) const;

 private:
  std::vector<corner> corners_ = {};
};

/// Returns the best mixture with free switches: the two hull corners around the required average rate. The faster one comes first
/// unless the slower one is running. Work with a price above `shortfall_J` is left undone.
///
/// Complexity  O(n log n).
/// Throws      invalid_input (check_mixing). The switching costs do not matter otherwise.
/// Source      Dora, section 4.3, eqs 7-8 with d = 0, in closed form.
[[nodiscard]] mixture mix_on_hull(const plan_rates& rates, const mixing_goal& goal);

/// Returns the least pause and the least energy of a switch into a plan, from any other or the running one; 0 for the running plan.
[[nodiscard]] switch_cost least_switch_cost(const plan_rates& rates, std::optional<std::size_t> running, std::size_t to);

/// Returns the linear program of eqs 7-8. Columns: the share x of the horizon of each plan by index and of idling, and the
/// shortfall z. Rows: progress, and the sum of the shares, which is 1.
///
///   minimize    sum over plans of x_p (e_p (H - d_p) + idle d_p + J_p) + x_idle idle H + lambda z
///   subject to  sum of r_p (H - d_p) x_p + z = EP,   sum of x = 1,   x, z >= 0
///
/// with d_p, J_p the least switching cost into p. The optimum is a lower bound for every sequence with at most one turn per plan,
/// so also for `mix`, whatever the table. Proof: w_p seconds of work are x_p = w_p / (H - d_p) <= 1 here. They take x_p H <= w_p +
/// d_p of the horizon and J_p x_p <= J_p; the rest idles at the power charged for pauses. An infinite price fixes z to 0: the
/// program bounds mixtures without shortfall and is infeasible if there are none.
///
/// Complexity  O(n^2).
/// Throws      invalid_input (check_mixing), and for a horizon <= 0.
/// Source      Dora, section 4.3, eqs 7-8. Deviations: idling and the shortfall are columns; pauses draw idle power plus the energy
///             of the switch; "=" for ">=" (see mix).
[[nodiscard]] lp_problem mixing_program(const plan_rates& rates, const mixing_goal& goal);

/// Returns the mixture of the linear program: a lower bound for `mix`, which devices cannot attain where switches cost. Parts: the
/// running plan first, then by index; shares below 1e-12 are left out.
///
/// Status      infeasible: no time is left, or at an infinite price no mixture does the work; stopped: the solver has no answer.
/// Complexity  O(n^2) plus the solver's.
/// Throws      invalid_input (check_mixing).
/// Source      Dora, section 4.3, eqs 7-8.
[[nodiscard]] mixture mix_relaxed(const plan_rates& rates, const mixing_goal& goal, const any_lp_solver& solver);

/// A period of constant rates and powers; `rates.switches` is not read.
struct rate_period {
  double seconds = 0;
  plan_rates rates = {};
};

/// The least energy of a job and the most work, over all ways to run it.
struct clairvoyant_bound {
  hetplan::status status = {};  ///< infeasible: the work cannot be done in these periods
  double energy_J = 0;          ///< until the end of the last period, idle time included
  double progress = 0;
  double shortfall = 0;
  double price_J = 0;  ///< price of the last unit of work, beyond idling; 0 without work
};

/// Returns the least energy to do `work` in the given periods, which end at the deadline.
///
/// The least power of a period as a function of the average rate is the convex hull of its plans (rate_hull). The cheapest segments
/// of all hulls are bought first, until the work is done. This solution of a fractional multiple-choice knapsack is exact, and the
/// slope of the last segment is the price of work. If the work cannot be done, all segments are bought.
///
/// Complexity   O(T n log n) for T periods of n plans.
/// Throws       invalid_input for negative or non-finite work or seconds, and for bad rates (check_plan_rates).
/// Determinism  segments of equal price: the earlier period first, which changes only the last digits of sums.
/// Source       the linear program of Dora's eqs 7-8 over all periods at once, without switching costs.
[[nodiscard]] clairvoyant_bound clairvoyant(std::span<const rate_period> periods, double work);

/// A pure callable that fills a horizon: it selects the plans to run, their order and their times.
///
/// * A `mixture` is a list of parts, followed by idle time. A part is a plan, as an index into `rates.plans`, with its seconds of
///   switching and of work. Parts and idle time take at most the horizon. Violations throw `invalid_model`.
/// * `progress` and `energy_J` are the controller's promises; the library does not recompute them.
/// * `uniform_progress` and `mixing_policy` execute the parts in order. They call the controller again after the last part, in a new
///   horizon, when a plan of the mixture can no longer run and after a turn of the reserve; `mixing_policy` also after a large change.
/// * With `mixture::control` = `receding_horizon`, which the shipped controllers set, the controller is called at every decision for the
///   rest of the horizon, and only the first part starts.
/// * The running plan, `goal.running`, continues without a switch. `uniform_progress` asks for `turn_order::faster_first`.
///
/// Ships: `exact_mixing` (the default), `hull_mixing` (free switches), `program_mixing` (Dora's linear program, solved by an `lp_solver`),
/// `any_mixing_controller` (chosen at run time).
///
/// Source  Dora, section 4.3, whose linear program is one model of the concept; the concept is ours.
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

/// The controller `mix`: each switch has a fixed cost, however short the turn.
struct exact_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix(rates, goal); }
};
/// The controller `mix_on_hull`: switches are free.
struct hull_mixing {
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const { return mix_on_hull(rates, goal); }
};
/// The controller `mix_relaxed`: the paper's linear program, with switching costs proportional to a plan's share.
struct program_mixing {
  any_lp_solver solver = {};  ///< an empty solver throws invalid_input
  [[nodiscard]] mixture operator()(const plan_rates& rates, const mixing_goal& goal) const;
};

/// A type-erased controller, held by value; its mixtures are checked. An empty callable throws invalid_input.
/// Complexity  the controller's, plus O(parts) for the check. Determinism: the controller's.
class any_mixing_controller {
 public:
  template <class C>
    requires(!std::same_as<C, any_mixing_controller>)
  any_mixing_controller(C c) {
    static_assert(check_mixing_controller<C>());
    if constexpr (mixing_controller<C>) mix_ = std::move(c);
    require_function(mix_, "any_mixing_controller", "a mixing controller, such as exact_mixing{}");
  }

  /// Throws  invalid_input (check_mixing); invalid_model for an unknown plan, a negative or NaN time, or a total beyond the horizon.
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
