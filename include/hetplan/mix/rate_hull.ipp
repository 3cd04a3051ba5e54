// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/rate_hull.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <range/v3/view/enumerate.hpp>

namespace hetplan::mix {

HETPLAN_INLINE rate_hull::rate_hull(const plan_rates& rates) {
  check_plan_rates(rates);
  build(rates.plans, rates.idle_W);
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

HETPLAN_INLINE void rate_hull::build(const std::vector<plan_rate>& plans, double idle_W) {
  std::vector<corner> points;
  for (const auto& [p, plan] : ranges::views::enumerate(plans)) {
    if (plan.rate > 0) points.push_back({p, plan.rate, plan.power_W});
  }
  std::ranges::stable_sort(points,
                           [](const corner& a, const corner& b) { return a.rate < b.rate || (a.rate == b.rate && a.power_W < b.power_W); });
  corners_.push_back({std::nullopt, 0, idle_W});
  for (const corner& c : points) {
    if (c.rate == corners_.back().rate) continue;  // draws no less
    while (corners_.size() > 1 && above(corners_[corners_.size() - 2], corners_.back(), c)) corners_.pop_back();
    corners_.push_back(c);
  }
}

HETPLAN_INLINE bool rate_hull::above(const corner& a, const corner& b, const corner& c) {
  return (b.power_W - a.power_W) * (c.rate - a.rate) >= (c.power_W - a.power_W) * (b.rate - a.rate);
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

}  // namespace hetplan::mix
