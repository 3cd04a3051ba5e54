// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/mixing_controller.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <range/v3/view/enumerate.hpp>

namespace hetplan::mix {

HETPLAN_INLINE rate_hull::rate_hull(const plan_rates& rates) {
  check_plan_rates(rates);
  std::vector<corner> points;
  for (const auto& [p, plan] : ranges::views::enumerate(rates.plans)) {
    if (plan.rate > 0) points.push_back({p, plan.rate, plan.power_W});
  }
  std::ranges::stable_sort(points,
                           [](const corner& a, const corner& b) { return a.rate < b.rate || (a.rate == b.rate && a.power_W < b.power_W); });
  const auto on_or_above_line = [](const corner& a, const corner& b, const corner& c) {
    return (b.power_W - a.power_W) * (c.rate - a.rate) >= (c.power_W - a.power_W) * (b.rate - a.rate);
  };
  corners_.push_back({std::nullopt, 0, rates.idle_W});
  for (const corner& c : points) {
    if (c.rate == corners_.back().rate) continue;  // same rate, no less power
    while (corners_.size() > 1 && on_or_above_line(corners_[corners_.size() - 2], corners_.back(), c)) corners_.pop_back();
    corners_.push_back(c);
  }
}

HETPLAN_INLINE double rate_hull::slope(std::size_t k) const {
  return (corners_[k + 1].power_W - corners_[k].power_W) / (corners_[k + 1].rate - corners_[k].rate);
}

HETPLAN_INLINE std::size_t rate_hull::segment(double rate) const {
  const auto after = std::ranges::lower_bound(corners_, rate, {}, &corner::rate);
  const auto k = static_cast<std::size_t>(after - corners_.begin());
  return k == 0 ? 0 : std::min(k, corners_.size() - 1) - 1;
}

HETPLAN_INLINE double rate_hull::power_W(double rate) const {
  if (!(rate > 0)) return corners_.front().power_W;
  if (rate > fastest()) return std::numeric_limits<double>::infinity();
  const std::size_t k = segment(rate);
  return corners_[k].power_W + slope(k) * (rate - corners_[k].rate);
}

HETPLAN_INLINE double rate_hull::price_J(double rate) const {
  if (rate > fastest() || corners_.size() == 1) return std::numeric_limits<double>::infinity();
  return slope(segment(rate));
}

HETPLAN_INLINE mixture mix_on_hull(const plan_rates& rates, const mixing_goal& goal) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) return detail::mixture_without_time(goal);
  const rate_hull hull(rates);
  double rate = std::min(goal.progress / goal.horizon_s, hull.fastest());
  std::size_t k = hull.segment(rate);
  while (rate > 0 && hull.slope(k) > goal.shortfall_J) {
    rate = hull.corners()[k].rate;
    if (k > 0) --k;
  }
  mixture m{.control = mixture_control::receding_horizon};
  if (rate > 0) {
    const rate_hull::corner &low = hull.corners()[k], &high = hull.corners()[k + 1];
    const double share = (rate - low.rate) / (high.rate - low.rate);
    m.parts.push_back({*high.plan, 0, share * goal.horizon_s});
    if (share < 1 && low.plan) {
      m.parts.insert(goal.running == low.plan ? m.parts.begin() : m.parts.end(), {*low.plan, 0, (1 - share) * goal.horizon_s});
    } else if (share < 1) {
      m.idle_s = (1 - share) * goal.horizon_s;
    }
  } else {
    m.idle_s = goal.horizon_s;
  }
  m.shortfall = rate * goal.horizon_s < goal.progress * (1 - 1e-12) ? goal.progress - rate * goal.horizon_s : 0;
  m.progress = goal.progress - m.shortfall;
  m.energy_J = hull.power_W(rate) * goal.horizon_s;
  m.objective = detail::priced(m.energy_J, m.shortfall, goal.shortfall_J);
  return m;
}

HETPLAN_INLINE switch_cost least_switch_cost(const plan_rates& rates, std::optional<std::size_t> running, std::size_t to) {
  switch_cost least = rates.cost(running, to);
  for (std::size_t from = 0; from < rates.plans.size(); ++from) {
    if (from == to || running == to) continue;
    const switch_cost other = rates.cost(from, to);
    least = {std::min(least.pause_s, other.pause_s), std::min(least.energy_J, other.energy_J)};
  }
  return least;
}

HETPLAN_INLINE lp_problem mixing_program(const plan_rates& rates, const mixing_goal& goal) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) throw invalid_input("mixing_program: horizon_s is " + to_text(goal.horizon_s) + "; expected more than 0");
  lp_problem lp;
  lp_problem::row progress{.terms = {}, .lower = goal.progress, .upper = goal.progress}, shares{.terms = {}, .lower = 1, .upper = 1};
  for (std::size_t p = 0; p < rates.plans.size(); ++p) {
    const switch_cost in = least_switch_cost(rates, goal.running, p);
    const double work_s = std::max(0.0, goal.horizon_s - in.pause_s);
    const bool useful = work_s > 0 && rates.plans[p].rate > 0;
    const int x = lp.add_column(rates.plans[p].power_W * work_s + rates.idle_W * in.pause_s + in.energy_J, 0, useful ? 1 : 0);
    progress.terms.emplace_back(x, rates.plans[p].rate * work_s);
    shares.terms.emplace_back(x, 1);
  }
  shares.terms.emplace_back(lp.add_column(rates.idle_W * goal.horizon_s, 0, 1), 1);
  const bool priced = std::isfinite(goal.shortfall_J);
  progress.terms.emplace_back(lp.add_column(priced ? goal.shortfall_J : 0, 0, priced ? std::numeric_limits<double>::infinity() : 0), 1);
  lp.rows = {progress, shares};
  return lp;
}

HETPLAN_INLINE mixture mix_relaxed(const plan_rates& rates, const mixing_goal& goal, const any_lp_solver& solver) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) return detail::mixture_without_time(goal);
  const lp_solution s = solver.solve(mixing_program(rates, goal));
  mixture m{.control = mixture_control::receding_horizon};
  if (s.status == lp_status::infeasible) {
    double most = 0;
    for (std::size_t p = 0; p < rates.plans.size(); ++p)
      most = std::max(most, rates.plans[p].rate * std::max(0.0, goal.horizon_s - least_switch_cost(rates, goal.running, p).pause_s));
    m.status = {outcome::infeasible,
                "mix_relaxed: no mixture does " + to_text(goal.progress) + " units of work in " + to_text(goal.horizon_s) + " s",
                infeasibility_proof{"mixtures of plans", {{"units of work by the fastest plan alone", goal.progress, most}}}};
    return m;
  }
  if (s.status != lp_status::optimal) {
    m.status = {outcome::stopped, "mix_relaxed: the solver has no answer"};
    return m;
  }
  const std::size_t n = rates.plans.size();
  const auto add = [&](std::size_t p) {
    if (s.x[p] < 1e-12) return;
    const double pause_s = least_switch_cost(rates, goal.running, p).pause_s;
    m.parts.push_back({p, s.x[p] * pause_s, s.x[p] * (goal.horizon_s - pause_s)});
  };
  if (goal.running) add(*goal.running);
  for (std::size_t p = 0; p < n; ++p) {
    if (goal.running != p) add(p);
  }
  m.idle_s = s.x[n] * goal.horizon_s;
  m.shortfall = s.x[n + 1];
  m.progress = goal.progress - m.shortfall;
  m.objective = s.objective;
  m.energy_J = std::isfinite(goal.shortfall_J) ? s.objective - goal.shortfall_J * m.shortfall : s.objective;
  return m;
}

HETPLAN_INLINE clairvoyant_bound clairvoyant(std::span<const rate_period> periods, double work) {
  const auto number = [](const std::string& where, double v) {
    if (!(std::isfinite(v) && v >= 0))
      throw invalid_input("clairvoyant: " + where + " is " + to_text(v) + "; expected a finite number >= 0");
  };
  number("work", work);
  struct piece {
    double price_J, work;
  };
  std::vector<piece> pieces;
  clairvoyant_bound bound;
  for (std::size_t t = 0; t < periods.size(); ++t) {
    number("seconds of period " + std::to_string(t), periods[t].seconds);
    const rate_hull hull(periods[t].rates);
    bound.energy_J += periods[t].rates.idle_W * periods[t].seconds;
    for (std::size_t k = 0; k + 1 < hull.corners().size(); ++k) {
      pieces.push_back({hull.slope(k), (hull.corners()[k + 1].rate - hull.corners()[k].rate) * periods[t].seconds});
    }
  }
  std::ranges::stable_sort(pieces, {}, &piece::price_J);
  double left = work;
  for (const piece& p : pieces) {
    if (!(left > 0)) break;
    const double bought = std::min(left, p.work);
    bound.energy_J += p.price_J * bought;
    if (bought > 0) bound.price_J = p.price_J;
    left -= bought;
  }
  bound.shortfall = left > 1e-12 * work ? left : 0;
  bound.progress = work - bound.shortfall;
  if (bound.shortfall > 0) {
    bound.status = {outcome::infeasible,
                    "clairvoyant: " + to_text(bound.shortfall) + " of " + to_text(work) + " units of work do not fit before the deadline",
                    infeasibility_proof{"mixtures of the plans of each period",
                                        {{"units of work by the fastest plan of every period", work, bound.progress}}}};
  }
  return bound;
}

HETPLAN_INLINE mixture program_mixing::operator()(const plan_rates& rates, const mixing_goal& goal) const {
  if (!solver.exists()) throw invalid_input("program_mixing: holds no LP solver; expected one, such as program_mixing{glpk_lp{}}");
  return mix_relaxed(rates, goal, solver);
}

HETPLAN_INLINE mixture any_mixing_controller::operator()(const plan_rates& rates, const mixing_goal& goal) const {
  check_mixing(rates, goal);
  mixture m = mix_(rates, goal);
  const auto fail = [](const std::string& what) { throw invalid_model("mixing controller: " + what); };
  const auto check_time = [&](const std::string& what, double s) {
    if (!(s >= 0)) fail(what + " takes " + to_text(s) + " s; expected a number >= 0");
  };
  double total_s = m.idle_s;
  check_time("idling", m.idle_s);
  for (const auto& [i, p] : ranges::views::enumerate(m.parts)) {
    const std::string part = "part " + std::to_string(i);
    if (p.plan >= rates.plans.size())
      fail(part + " is plan " + std::to_string(p.plan) + "; expected one below " + std::to_string(rates.plans.size()));
    check_time(part, p.seconds);
    check_time("the pause of " + part, p.pause_s);
    total_s += p.pause_s + p.seconds;
  }
  if (m.status.ok() && !at_most(total_s, goal.horizon_s))
    fail("parts and idling take " + to_text(total_s) + " s; expected at most the horizon, " + to_text(goal.horizon_s) + " s");
  return m;
}

}  // namespace hetplan::mix
