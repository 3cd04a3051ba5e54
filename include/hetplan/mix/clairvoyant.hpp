// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a job costs at least: for one who knows every plan's rate in every future period and switches for free.

#include <span>

#include <hetplan/core/status.hpp>
#include <hetplan/mix/plan_rates.hpp>

namespace hetplan::mix {

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

}  // namespace hetplan::mix

#ifndef HETPLAN_COMPILED
#include <hetplan/mix/clairvoyant.ipp>
#endif
