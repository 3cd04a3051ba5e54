// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/mix/clairvoyant.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/mix/rate_hull.hpp>

namespace hetplan::mix {

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

}  // namespace hetplan::mix
