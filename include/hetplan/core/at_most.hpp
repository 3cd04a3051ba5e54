// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Comparing what was added up: rounding is no difference.

#include <algorithm>
#include <cmath>

#include <hetplan/core/linkage.hpp>
#include <hetplan/core/quantity.hpp>

namespace hetplan {

/// Sums of the same numbers in another order, or with other brackets, differ by less than this part of them.
inline constexpr double relative_tolerance = 1e-9;

/// Are two times of one clock in this order, or the same but for rounding?
///
/// @param span  what the tolerance is a part of: how long that takes which ends then, or may take. A clock that began long ago counts
///              in larger steps; four of these are no difference, either.
/// Complexity   O(1).   NaN is in no order.
/// Source       semantics, section 1.
[[nodiscard]] inline bool at_most(double a, double b, double span) {
  constexpr double four_steps = 0x1p-50;
  return a <= b || a - b <= relative_tolerance * span + four_steps * std::abs(b);
}

/// Is an amount, or a time since the beginning, at most another one, but for rounding: to one part in 10^9 of the smaller?
[[nodiscard]] inline bool at_most(double a, double b) { return at_most(a, b, std::min(std::abs(a), std::abs(b))); }
template <int T, int D, int E, int W>
[[nodiscard]] bool at_most(quantity<T, D, E, W> a, quantity<T, D, E, W> b) {
  return at_most(a.value(), b.value());
}

}  // namespace hetplan
