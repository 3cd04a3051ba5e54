// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The least power at which plans, mixed without switching costs, work at a given rate; and the price of work.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <hetplan/adapt/mixing.hpp>
#include <hetplan/adapt/plan_rates.hpp>

namespace hetplan::adapt {

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

  explicit rate_hull(const plan_rates& rates) {
    check_plan_rates(rates);
    build(rates.plans, rates.idle_W);
  }

  [[nodiscard]] const std::vector<corner>& corners() const { return corners_; }
  [[nodiscard]] double fastest() const { return corners_.back().rate; }
  /// Joules per unit of work between corners k and k + 1, beyond what idling takes.
  [[nodiscard]] double slope(std::size_t k) const {
    return (corners_[k + 1].power_W - corners_[k].power_W) / (corners_[k + 1].rate - corners_[k].rate);
  }
  /// The corner before which a rate in [0, fastest] lies: rate(k) < rate <= rate(k + 1); 0 for 0.
  [[nodiscard]] std::size_t segment(double rate) const {
    const auto after = std::ranges::lower_bound(corners_, rate, {}, &corner::rate);
    const auto k = static_cast<std::size_t>(after - corners_.begin());
    return k == 0 ? 0 : std::min(k, corners_.size() - 1) - 1;
  }
  /// Least power of a mixture that works at `rate`; infinite beyond the fastest.
  [[nodiscard]] double power_W(double rate) const {
    if (!(rate > 0)) return corners_.front().power_W;
    if (rate > fastest()) return std::numeric_limits<double>::infinity();
    const std::size_t k = segment(rate);
    return corners_[k].power_W + slope(k) * (rate - corners_[k].rate);
  }
  /// What the last unit of work costs at a rate [J]: of the first segment at 0, infinite beyond the fastest or without plans.
  [[nodiscard]] double price_J(double rate) const {
    if (rate > fastest() || corners_.size() == 1) return std::numeric_limits<double>::infinity();
    return slope(segment(rate));
  }

 private:
  void build(const std::vector<plan_rate>& plans, double idle_W) {
    std::vector<corner> points;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      if (plans[p].rate > 0) points.push_back({p, plans[p].rate, plans[p].power_W});
    }
    std::ranges::stable_sort(
        points, [](const corner& a, const corner& b) { return a.rate < b.rate || (a.rate == b.rate && a.power_W < b.power_W); });
    corners_.push_back({std::nullopt, 0, idle_W});
    for (const corner& c : points) {
      if (c.rate == corners_.back().rate) continue;  // draws no less
      while (corners_.size() > 1 && above(corners_[corners_.size() - 2], corners_.back(), c)) corners_.pop_back();
      corners_.push_back(c);
    }
  }
  /// b is on the line from a to c or above it.
  static bool above(const corner& a, const corner& b, const corner& c) {
    return (b.power_W - a.power_W) * (c.rate - a.rate) >= (c.power_W - a.power_W) * (b.rate - a.rate);
  }

  std::vector<corner> corners_ = {};
};

/// The best mixture when switching is free, off the hull: the two corners beside the average rate asked for, the faster
/// first unless the slower one runs. Work that costs more than `shortfall_J` is left undone.
///
/// Complexity  O(n log n).
/// Throws      invalid_input (check_mixing); the table of switching costs is not read.
/// Source      Dora, section 4.3, eqs 7-8 with d = 0, in closed form.
[[nodiscard]] inline mixture mix_on_hull(const plan_rates& rates, const mixing_goal& goal) {
  check_mixing(rates, goal);
  if (!(goal.horizon_s > 0)) return detail::mixture_without_time(goal);
  const rate_hull hull(rates);
  double rate = std::min(goal.progress / goal.horizon_s, hull.fastest());
  std::size_t k = hull.segment(rate);
  while (rate > 0 && hull.slope(k) > goal.shortfall_J) {
    rate = hull.corners()[k].rate;
    if (k > 0) --k;
  }
  mixture m;
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
  m.objective = m.energy_J + (m.shortfall > 0 && std::isfinite(goal.shortfall_J) ? goal.shortfall_J * m.shortfall : 0);
  return m;
}

}  // namespace hetplan::adapt
