// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plan mixing: which plans run in a horizon, in which order and for how long, so that the work asked for is done with
/// least energy.

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

// What deciding over time needs to know of plans: how fast each works, what it draws, what changing between them takes.

/// A plan from far away. Work is counted in whatever the job counts: iterations, samples, tokens.
///
/// Source  Dora, section 4.3, eqs 7-8: r_p, e_p and d_p. Deviation: d_p is a table of pairs, and has joules of its own.
struct plan_rate {
  double rate = 0;     ///< work per second; a plan of rate 0 is never run
  double power_W = 0;  ///< of all devices while it runs

  friend bool operator==(const plan_rate&, const plan_rate&) = default;
};

/// What starting a plan takes. The devices idle through the pause; the energy comes on top of that.
struct switch_cost {
  double pause_s = 0;
  double energy_J = 0;

  friend bool operator==(const switch_cost&, const switch_cost&) = default;
};

/// Switching costs between n plans, and from nothing to each; an empty table is free.
///
/// To go on with the plan that ran last costs nothing, also after idling. A detour is expected to save nothing:
/// (a, c) costs no more seconds and joules than (a, b) and (b, c) together. Tables of moved bytes are like that; where one
/// is not, nobody here looks for the detour.
struct switch_table {
  std::vector<switch_cost> between = {};  ///< n x n, by rows: from * n + to; the diagonal is not read
  std::vector<switch_cost> start = {};    ///< n

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const;

  friend bool operator==(const switch_table&, const switch_table&) = default;
};

/// The plans that may run, by index, and what the devices draw together while none does.
struct plan_rates {
  std::vector<plan_rate> plans = {};
  switch_table switches = {};
  double idle_W = 0;

  [[nodiscard]] switch_cost cost(std::optional<std::size_t> from, std::size_t to) const { return switches.cost(from, to, plans.size()); }

  friend bool operator==(const plan_rates&, const plan_rates&) = default;
};

/// Throws invalid_input for a number that is negative or not finite and for a table of another size. O(n^2).
void check_plan_rates(const plan_rates& r);

/// Throws invalid_input unless `running` is none or one of the plans.
void check_running(const plan_rates& r, std::optional<std::size_t> running);

// The door for criteria, and the five that ship.

template <class C>
concept values_evaluation = requires(const C& c, const evaluation& e) {
  { c.value(e) } -> std::same_as<double>;  // smaller is better; not NaN; pure
};

/// One number of an evaluated plan by which plans are compared. An `objective` says which plan is best; criteria are for those who keep
/// several plans (`pareto_plans`) and decide later.
///
/// * Any unit: only values of one criterion are compared. Infinity is a way to say "never"; NaN throws `invalid_input`.
/// * `pareto_plans` keeps the plans that no other one beats in every criterion. `hypervolume` says in one number how good such a set is.
///
/// Ships: `response_time` [s], `total_energy` [J], `device_energy` of one device [J], `peak_memory` of the device that needs most [B],
/// `bytes_moved` over all resources [B].
///
/// Source  response time and energy: Dora, section 4.3 and Fig. 7; the others are ours.
template <class C>
concept criterion = values_evaluation<C>;

template <class C>
consteval bool check_criterion() {
  static_assert(values_evaluation<C>, "criterion needs: double value(const hetplan::evaluation&) const, smaller is better");
  return criterion<C>;
}

/// T, or the time between tokens in generation [s].
struct response_time {
  [[nodiscard]] double value(const evaluation& e) const { return e.response().value(); }
};
/// Energy of all devices [J].
struct total_energy {
  [[nodiscard]] double value(const evaluation& e) const { return e.energy().value(); }
};
/// Energy of one device [J]. Throws invalid_input for a device that the evaluation does not have.
struct device_energy {
  device_id device;
  [[nodiscard]] double value(const evaluation& e) const;
};
/// Peak memory of the device that needs most [B].
struct peak_memory {
  [[nodiscard]] double value(const evaluation& e) const { return e.peak_memory().value(); }
};
/// Bytes over all resources, each as often as it crosses one [B].
struct bytes_moved {
  [[nodiscard]] double value(const evaluation& e) const;
};

static_assert(check_criterion<response_time>() && check_criterion<total_energy>() && check_criterion<device_energy>() &&
              check_criterion<peak_memory>() && check_criterion<bytes_moved>());

/// Which of two plans has the first turn if neither runs. A running plan always is first.
///
/// `cheapest`: whichever order switches for less. `faster_first`: the faster one, whatever the switches cost: work that is
/// done early leaves a slower plan for the rest, which a surprise can still turn into a faster one.
enum class turn_order { cheapest, faster_first };

/// What a horizon should bring.
struct mixing_goal {
  double horizon_s = 0;
  double progress = 0;                                           ///< work that should be done by its end (EP)
  std::optional<std::size_t> running = {};                       ///< the plan that ran last; it goes on without a switch
  double shortfall_J = std::numeric_limits<double>::infinity();  ///< price per unit of work not done; infinite: least shortfall first
  turn_order order = turn_order::cheapest;
};

/// A plan's turn: `pause_s` of switching, then `seconds` of work.
struct mixture_part {
  std::size_t plan = 0;
  double pause_s = 0;
  double seconds = 0;

  friend bool operator==(const mixture_part&, const mixture_part&) = default;
};

/// How uniform_progress follows a mixture.
///
/// `open_loop`: its turns run in order; the controller is asked again when they are through, when a new horizon begins, when a plan
/// among them can run no more, and after the reserve has taken a turn. `receding_horizon`: the first turn begins, and the controller
/// is asked again at every decision, so that what went otherwise than expected is made up for at once.
enum class mixture_control { open_loop, receding_horizon };

/// Parts in the order in which they run, then idling; together they fill the horizon.
struct mixture {
  hetplan::status status = {};  ///< infeasible: the horizon has no time left but work; the sentence says since when
  std::vector<mixture_part> parts = {};
  double idle_s = 0;
  double progress = 0;                                   ///< promised
  double shortfall = 0;                                  ///< asked for and not promised
  double energy_J = 0;                                   ///< of the whole horizon, idling included
  double objective = 0;                                  ///< energy and priced shortfall; where the price is infinite, the energy alone
  mixture_control control = mixture_control::open_loop;  ///< mix, mix_on_hull and mix_relaxed ask for the receding horizon
};

/// Throws invalid_input for bad rates (check_plan_rates) and for a goal with NaN, an infinite horizon, negative progress or
/// price, or a plan that is none. A horizon <= 0 is a status, not an error: deadlines pass.
void check_mixing(const plan_rates& rates, const mixing_goal& goal);

namespace detail {

/// mixture::objective.
[[nodiscard]] double priced(double energy_J, double shortfall, double shortfall_J);

/// The answer where no time is left: nothing runs.
[[nodiscard]] mixture mixture_without_time(const mixing_goal& goal);

}  // namespace detail

/// The best mixture when a switch costs what it costs, however short the turn: progress = sum of rate * (time - pause).
///
/// Two plans are enough. For a given sequence of plans the pauses are paid and what remains is a linear program in the
/// seconds of work of each plan, the idle seconds and the shortfall, with two equations: they fill what is left of the
/// horizon, and progress plus shortfall is what was asked for. One of its best solutions is a vertex, where at most two of
/// these are not 0; hence at most two plans work, with idling or shortfall only beside one. A plan of the sequence that
/// does not work can be left out: that saves its pauses, which become idle time at the same power (switch_table's rule on
/// detours). And the running plan, where it works, comes first, where it is free. So every support of one or two plans in
/// either order (unless `order` decides) is tried, each in closed form.
///
/// Idling comes last, so that a late surprise finds time. With `shortfall_J` infinite (the paper's constraint, eq 8) the
/// least shortfall comes first and energy decides among equals; where not even all the time of the fastest plan does, the
/// status is still ok and `shortfall` > 0.
///
/// Units        as the fields say; energy counts idle_W through idling and pauses.
/// Complexity   O(n^2) for n plans, the same to check the table; allocates the answer's parts.
/// Throws       invalid_input (check_mixing).
/// Determinism  of mixtures within 1e-12 of each other: fewer switches, then fewer plans, then smaller indices, then the
///              faster plan first.
/// Source       Dora, section 4.3, eqs 7-8. Deviations: switching costs are fixed per switch and depend on both plans,
///              where the paper charges them in proportion to a plan's share (mixing_program); what a horizon does beyond
///              the work asked for is not possible rather than free, which is the same unless a plan draws less than
///              idling.
[[nodiscard]] mixture mix(const plan_rates& rates, const mixing_goal& goal);

}  // namespace hetplan::mix

#ifndef HETPLAN_SEPARATE
#include <hetplan/mix/mixing.ipp>
#endif
