// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a job costs at least: for one who knows every plan's rate in every future period and switches for free.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <hetplan/adapt/plan_rates.hpp>
#include <hetplan/adapt/rate_hull.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/status.hpp>

namespace hetplan::adapt {

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
[[nodiscard]] inline clairvoyant_bound clairvoyant(std::span<const rate_period> periods, double work) {
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
                    "clairvoyant: " + to_text(bound.shortfall) + " of " + to_text(work) + " units of work do not fit before the deadline"};
  }
  return bound;
}

}  // namespace hetplan::adapt
