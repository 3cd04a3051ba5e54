// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/mixing.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace hetplan::mix {

HETPLAN_INLINE switch_cost switch_table::cost(std::optional<std::size_t> from, std::size_t to, std::size_t plans) const {
  if (!from) return start.empty() ? switch_cost{} : start[to];
  return between.empty() || *from == to ? switch_cost{} : between[*from * plans + to];
}

HETPLAN_INLINE void check_plan_rates(const plan_rates& r) {
  const auto fail = [](const std::string& what) { throw invalid_input("plan_rates: " + what); };
  const auto number = [&](double v, const auto& where) {  // where(): builds a string only for the error
    if (!(std::isfinite(v) && v >= 0)) fail(where() + " is " + to_text(v) + "; expected a finite number >= 0");
  };
  const auto field = [](const char* of, std::size_t i, const char* name) {
    return [=] { return of + ("[" + std::to_string(i)) + "]." + name; };
  };
  const auto costs = [&](const char* of, const std::vector<switch_cost>& all, std::size_t expected) {
    if (!all.empty() && all.size() != expected)
      fail(of + (" has " + std::to_string(all.size())) + " entries; expected none or " + std::to_string(expected));
    for (std::size_t i = 0; i < all.size(); ++i) {
      number(all[i].pause_s, field(of, i, "pause_s"));
      number(all[i].energy_J, field(of, i, "energy_J"));
    }
  };
  const std::size_t n = r.plans.size();
  for (std::size_t p = 0; p < n; ++p) {
    number(r.plans[p].rate, field("plans", p, "rate"));
    number(r.plans[p].power_W, field("plans", p, "power_W"));
  }
  number(r.idle_W, [] { return std::string("idle_W"); });
  costs("switches.between", r.switches.between, n * n);
  costs("switches.start", r.switches.start, n);
}

HETPLAN_INLINE void check_running(const plan_rates& r, std::optional<std::size_t> running) {
  if (running && *running >= r.plans.size()) {
    throw invalid_input("plan_rates: plan " + std::to_string(*running) + " runs, of " + std::to_string(r.plans.size()) +
                        "; expected one of them or none");
  }
}

HETPLAN_INLINE double device_energy::value(const evaluation& e) const {
  if (!device.valid() || device.index() >= e.devices.size()) {
    throw invalid_input("device_energy: device " + std::to_string(device.value) + " of an evaluation with " +
                        std::to_string(e.devices.size()) + " devices; expected one of them");
  }
  return e.devices[device.index()].energy.value();
}

HETPLAN_INLINE double bytes_moved::value(const evaluation& e) const {
  bytes total;
  for (const bytes b : e.resource_bytes) total += b;
  return total.value();
}

HETPLAN_INLINE void check_mixing(const plan_rates& rates, const mixing_goal& goal) {
  check_plan_rates(rates);
  check_running(rates, goal.running);
  const auto fail = [](const std::string& what) { throw invalid_input("mixing: " + what); };
  if (!std::isfinite(goal.horizon_s)) fail("horizon_s is " + to_text(goal.horizon_s) + "; expected a finite number");
  if (!(std::isfinite(goal.progress) && goal.progress >= 0))
    fail("progress is " + to_text(goal.progress) + "; expected a finite number >= 0");
  if (!(goal.shortfall_J >= 0)) fail("shortfall_J is " + to_text(goal.shortfall_J) + "; expected a number >= 0, or infinity");
}

namespace detail {

HETPLAN_INLINE double priced(double energy_J, double shortfall, double shortfall_J) {
  return energy_J + (shortfall > 0 && std::isfinite(shortfall_J) ? shortfall_J * shortfall : 0);
}

HETPLAN_INLINE mixture mixture_without_time(const mixing_goal& goal) {
  mixture m;
  m.shortfall = goal.progress;
  m.objective = priced(0, goal.progress, goal.shortfall_J);
  if (goal.progress > 0) {
    m.status = {outcome::infeasible,
                "deadline passed " + to_text(-goal.horizon_s) + " s ago with " + to_text(goal.progress) + " units of work left",
                infeasibility_proof{"mixtures of plans", {{"units of work in no time", goal.progress, 0}}}};
  }
  return m;
}

/// Up to two plans and their seconds of work; the rest of the horizon is idle time and pauses.
struct mixing_candidate {
  std::optional<std::size_t> first = {}, second = {};
  double first_s = 0, second_s = 0;
  double shortfall = 0;
  double energy_J = 0;
};

/// The best candidate so far; a candidate that is equal up to rounding does not replace it.
class best_mixing {
 public:
  best_mixing(const plan_rates& rates, const mixing_goal& goal) : rates_(rates), goal_(goal) {
    best_.shortfall = goal.progress;
    best_.energy_J = rates.idle_W * goal.horizon_s;
  }
  [[nodiscard]] const mixing_candidate& best() const { return best_; }
  [[nodiscard]] double objective(const mixing_candidate& c) const { return priced(c.energy_J, c.shortfall, goal_.shortfall_J); }

  /// Tries one plan, until the work is done or the time is over.
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
  /// Tries two plans that fill the horizon and do exactly the work.
  void try_two(std::size_t p, std::size_t q) {
    const plan_rate &one = rates_.plans[p], &two = rates_.plans[q];
    const switch_cost in = rates_.cost(goal_.running, p), over = rates_.cost(p, q);
    const double time = goal_.horizon_s - in.pause_s - over.pause_s;
    if (!(one.rate > 0 && two.rate > 0 && one.rate != two.rate && time > 0)) return;
    const double second = (goal_.progress - one.rate * time) / (two.rate - one.rate), first = time - second;
    if (!(first > tolerance * time && second > tolerance * time)) return;  // one plan suffices
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

HETPLAN_INLINE mixture mix(const plan_rates& rates, const mixing_goal& goal) {
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
  mixture m{.shortfall = best.shortfall,
            .energy_J = best.energy_J,
            .objective = search.objective(best),
            .control = mixture_control::receding_horizon};
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

}  // namespace hetplan::mix
