// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cuts a sequence of layers into one piece per stage so that no stage has much more to do than another.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/core/linkage.hpp>

namespace hetplan::adapt {

/// Where consecutive stages begin: stage k is [first[k], first[k+1]) of the items, the last ends with them.
struct proportional_cut {
  double largest = std::numeric_limits<double>::infinity();  ///< share of a stage, or cost of a boundary
  std::vector<std::size_t> first = {};
  [[nodiscard]] bool exists() const { return !first.empty(); }
};

/// The cut whose largest share of a stage, or cost of a boundary, is smallest.
///
/// @param items     of the sequence.
/// @param stages    in their order.
/// @param least     items that every stage gets at least: 1, or 0 where stages may be left out.
/// @param share     (stage, first, last) -> what these items are to the stage, as work / capacity; >= 0, finite, must not fall
///                  as `last` grows, 0 for no items.
/// @param boundary  (stage, item) -> cost of the boundary behind the stage, where the item comes first behind it; in the unit
///                  of the shares, >= 0. Not asked at the sequence's end. All 0: the shares alone.
/// @param fits      (stage, first, last) -> may the stage hold these items? If it may not, it may not hold more either.
/// @return          the exact optimum, or none if nothing fits.
/// Complexity       O(stages x items^2) at worst; pieces beyond the best known are not tried.
/// Determinism      ties: the smaller largest share, the best pieces behind a stage being given; then the earliest cut.
/// Source           Asteroid, section 3.4: workload "reallocated among the remaining stages based on their computing capacity".
///                  Boundaries that cost something are ours.
template <std::invocable<std::size_t, std::size_t, std::size_t> Share, std::invocable<std::size_t, std::size_t> Boundary,
          std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut cut_in_proportion(std::size_t items, std::size_t stages, std::size_t least, const Share& share,
                                                 const Boundary& boundary, const Fits& fits) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  struct choice {
    double largest = std::numeric_limits<double>::infinity();
    double share = std::numeric_limits<double>::infinity();  ///< the largest, without boundaries
    std::size_t end = 0;
  };
  std::vector<choice> cells((stages + 1) * (items + 1));  // (stage, first item): the best for this stage and those behind it
  const auto cell = [&](std::size_t k, std::size_t i) -> choice& { return cells[k * (items + 1) + i]; };
  cell(stages, items) = {0, 0, items};
  for (std::size_t k = stages; k-- > 0;) {
    for (std::size_t i = 0; i <= items; ++i) {
      choice& best = cell(k, i);
      for (std::size_t end = i + least; end <= items; ++end) {
        const double mine = share(k, i, end);
        if (mine >= best.largest) break;  // no better in either: a share is no larger than `largest`
        const choice& rest = cell(k + 1, end);
        if (rest.largest == inf) continue;
        const choice now{std::max({mine, rest.largest, end < items ? boundary(k, end) : 0.0}), std::max(mine, rest.share), end};
        if (now.largest > best.largest || (now.largest == best.largest && now.share >= best.share)) continue;
        if (end > i && !fits(k, i, end)) break;
        best = now;
      }
    }
  }
  proportional_cut cut;
  cut.largest = cell(0, 0).largest;
  if (cut.largest == inf) return cut;
  for (std::size_t k = 0, i = 0; k < stages; i = cell(k, i).end, ++k) cut.first.push_back(i);
  return cut;
}

}  // namespace hetplan::adapt
