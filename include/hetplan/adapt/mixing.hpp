// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Plan mixing: which plans run in a horizon, in which order and for how long, so that the work asked for is done with
/// least energy.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <hetplan/adapt/plan_rates.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/status.hpp>

namespace hetplan::adapt {

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

/// Parts in the order in which they run, then idling; together they fill the horizon.
struct mixture {
  hetplan::status status = {};  ///< infeasible: the horizon has no time left but work; the sentence says since when
  std::vector<mixture_part> parts = {};
  double idle_s = 0;
  double progress = 0;   ///< promised
  double shortfall = 0;  ///< asked for and not promised
  double energy_J = 0;   ///< of the whole horizon, idling included
  double objective = 0;  ///< energy and priced shortfall; where the price is infinite, the energy alone
};

/// Throws invalid_input for bad rates (check_plan_rates) and for a goal with NaN, an infinite horizon, negative progress or
/// price, or a plan that is none. A horizon <= 0 is a status, not an error: deadlines pass.
inline void check_mixing(const plan_rates& rates, const mixing_goal& goal) {
  check_plan_rates(rates);
  check_running(rates, goal.running);
  const auto fail = [](const std::string& what) { throw invalid_input("mixing: " + what); };
  if (!std::isfinite(goal.horizon_s)) fail("horizon_s is " + to_text(goal.horizon_s) + "; expected a finite number");
  if (!(std::isfinite(goal.progress) && goal.progress >= 0))
    fail("progress is " + to_text(goal.progress) + "; expected a finite number >= 0");
  if (!(goal.shortfall_J >= 0)) fail("shortfall_J is " + to_text(goal.shortfall_J) + "; expected a number >= 0, or infinity");
}

namespace detail {

/// The answer where no time is left: nothing runs.
[[nodiscard]] inline mixture mixture_without_time(const mixing_goal& goal) {
  mixture m;
  m.shortfall = goal.progress;
  m.objective = goal.progress > 0 && std::isfinite(goal.shortfall_J) ? goal.shortfall_J * goal.progress : 0;
  if (goal.progress > 0) {
    m.status = {outcome::infeasible,
                "deadline passed " + to_text(-goal.horizon_s) + " s ago with " + to_text(goal.progress) + " units of work left"};
  }
  return m;
}

/// Up to two plans and their seconds of work; what is left of the horizon idles or is paused.
struct mixing_candidate {
  std::optional<std::size_t> first = {}, second = {};
  double first_s = 0, second_s = 0;
  double shortfall = 0;
  double energy_J = 0;
};

/// Keeps the best candidate so far; one that is as good but for rounding does not replace it.
class best_mixing {
 public:
  best_mixing(const plan_rates& rates, const mixing_goal& goal) : rates_(rates), goal_(goal) {
    best_.shortfall = goal.progress;
    best_.energy_J = rates.idle_W * goal.horizon_s;
  }
  [[nodiscard]] const mixing_candidate& best() const { return best_; }
  [[nodiscard]] double objective(const mixing_candidate& c) const {
    return c.energy_J + (c.shortfall > 0 && std::isfinite(goal_.shortfall_J) ? goal_.shortfall_J * c.shortfall : 0);
  }

  /// One plan, until the work is done or the time is over.
  void try_one(std::size_t p) {
    const plan_rate& plan = rates_.plans[p];
    const switch_cost in = rates_.cost(goal_.running, p);
    const double time = goal_.horizon_s - in.pause_s;
    if (!(plan.rate > 0 && time > 0 && goal_.progress > 0)) return;
    mixing_candidate c{.first = p, .first_s = std::min(time, goal_.progress / plan.rate)};
    const double missing = goal_.progress - plan.rate * c.first_s;
    c.shortfall = missing > tolerance * goal_.progress ? missing : 0;
    c.energy_J = rates_.idle_W * goal_.horizon_s + (plan.power_W - rates_.idle_W) * c.first_s + in.energy_J;
    offer(c);
  }
  /// Two plans that fill the horizon and do exactly the work.
  void try_two(std::size_t p, std::size_t q) {
    const plan_rate &one = rates_.plans[p], &two = rates_.plans[q];
    const switch_cost in = rates_.cost(goal_.running, p), over = rates_.cost(p, q);
    const double time = goal_.horizon_s - in.pause_s - over.pause_s;
    if (!(one.rate > 0 && two.rate > 0 && one.rate != two.rate && time > 0)) return;
    const double second = (goal_.progress - one.rate * time) / (two.rate - one.rate), first = time - second;
    if (!(first > tolerance * time && second > tolerance * time)) return;  // one plan does it
    const double working = (one.power_W - rates_.idle_W) * first + (two.power_W - rates_.idle_W) * second;
    offer({p, q, first, second, 0, rates_.idle_W * goal_.horizon_s + working + in.energy_J + over.energy_J});
  }

 private:
  static constexpr double tolerance = 1e-12;

  void offer(const mixing_candidate& c) {
    if (std::isinf(goal_.shortfall_J)) {
      const double gain = best_.shortfall - c.shortfall, slack = tolerance * goal_.progress;
      if (gain < -slack) return;
      if (gain > slack) {
        best_ = c;
        return;
      }
    }
    if (objective(c) < objective(best_) - tolerance * std::abs(objective(best_))) best_ = c;
  }

  const plan_rates& rates_;
  const mixing_goal& goal_;
  mixing_candidate best_ = {};
};

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
[[nodiscard]] inline mixture mix(const plan_rates& rates, const mixing_goal& goal) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) return detail::mixture_without_time(goal);
  const std::size_t n = rates.plans.size();
  const std::optional<std::size_t> running = goal.running;
  detail::best_mixing search(rates, goal);  // no switch: idling
  if (running) {
    search.try_one(*running);  // no switch
    for (std::size_t p = 0; p < n; ++p) {
      if (p != *running) search.try_one(p);
    }
    for (std::size_t q = 0; q < n; ++q) {
      if (q != *running) search.try_two(*running, q);  // one switch
    }
  } else {
    for (std::size_t p = 0; p < n; ++p) search.try_one(p);
  }
  for (std::size_t p = 0; p < n; ++p) {
    if (running == p) continue;
    for (std::size_t q = p + 1; q < n; ++q) {  // two switches
      if (running == q) continue;
      const bool p_first = rates.plans[p].rate > rates.plans[q].rate;
      search.try_two(p_first ? p : q, p_first ? q : p);
      if (goal.order == turn_order::cheapest) search.try_two(p_first ? q : p, p_first ? p : q);
    }
  }
  const detail::mixing_candidate& best = search.best();
  mixture m{.shortfall = best.shortfall, .energy_J = best.energy_J, .objective = search.objective(best)};
  double busy = 0;
  const auto add = [&](std::optional<std::size_t> from, std::size_t p, double seconds) {
    m.parts.push_back({p, rates.cost(from, p).pause_s, seconds});
    busy += m.parts.back().pause_s + seconds;
  };
  if (best.first) add(running, *best.first, best.first_s);
  if (best.second) add(best.first, *best.second, best.second_s);
  m.idle_s = best.second ? 0 : std::max(0.0, goal.horizon_s - busy);
  m.progress = goal.progress - best.shortfall;
  return m;
}

}  // namespace hetplan::adapt
