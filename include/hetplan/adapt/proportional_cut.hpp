// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cuts a sequence of layers into one piece per stage, in proportion to what the stages can do.

#include <algorithm>
#include <concepts>
#include <limits>
#include <vector>

namespace hetplan::adapt {

/// Where consecutive stages begin: stage k is [first[k], first[k+1]) of the items, the last ends with them.
struct proportional_cut {
  double largest_share = std::numeric_limits<double>::infinity();  ///< work / capacity of the slowest stage
  std::vector<std::size_t> first = {};
  [[nodiscard]] bool exists() const { return !first.empty(); }
};

namespace detail {

/// The dynamic program behind both cuts, from the last stage to the first.
///
/// @param limit  no stage may have a larger share.
/// @param join   (share of a stage, where it ends, value of the rest) -> value; smallest is best.
/// @param prune  (share of a stage, best value so far) -> is every longer stage worse?
template <class Fits, class Join, class Prune>
[[nodiscard]] proportional_cut cut_stages(const std::vector<double>& work, const std::vector<double>& capacity, std::size_t least, double limit,
                                          const Fits& fits, const Join& join, const Prune& prune) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t items = work.size(), stages = capacity.size();
  std::vector<double> sum(items + 1, 0);
  for (std::size_t i = 0; i < items; ++i) sum[i + 1] = sum[i] + work[i];
  struct choice {
    double value = std::numeric_limits<double>::infinity();
    std::size_t end = 0;
  };
  std::vector<choice> cells((stages + 1) * (items + 1));  // (stage, first item): the best for this stage and those behind it
  const auto cell = [&](std::size_t k, std::size_t i) -> choice& { return cells[k * (items + 1) + i]; };
  const auto share = [&](std::size_t k, std::size_t first, std::size_t last) { return (sum[last] - sum[first]) / capacity[k]; };
  cell(stages, items).value = 0;
  for (std::size_t k = stages; k-- > 0;) {
    for (std::size_t i = 0; i <= items; ++i) {
      choice& best = cell(k, i);
      for (std::size_t end = i + least; end <= items; ++end) {
        const double mine = share(k, i, end), rest = cell(k + 1, end).value;
        if (mine > limit || prune(mine, best.value)) break;
        if (rest == inf) continue;
        const double all = join(mine, end, rest);
        if (all >= best.value) continue;
        if (end > i && !fits(k, i, end)) break;
        best = {all, end};
      }
    }
  }
  proportional_cut cut;
  if (cell(0, 0).value == inf) return cut;
  cut.largest_share = 0;
  for (std::size_t k = 0, i = 0; k < stages; i = cell(k, i).end, ++k) {
    cut.first.push_back(i);
    cut.largest_share = std::max(cut.largest_share, share(k, i, cell(k, i).end));
  }
  return cut;
}

}  // namespace detail

/// The cut whose largest work / capacity is smallest.
///
/// @param work      of each item, >= 0.
/// @param capacity  of each stage, > 0.
/// @param least     items that every stage gets at least: 1, or 0 where stages may be left out.
/// @param fits      (stage, first, last) -> may the stage hold these items? If it may not, it may not hold more either.
/// @return          the exact optimum, or none if nothing fits.
/// Complexity       O(stages x items^2) at worst; pieces beyond the best share known are not tried.
/// Determinism      ties: the earliest cut.
/// Source           Asteroid, section 3.4: workload "reallocated among the remaining stages based on their computing capacity".
template <std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut cut_in_proportion(const std::vector<double>& work, const std::vector<double>& capacity, std::size_t least,
                                                 const Fits& fits) {
  return detail::cut_stages(
      work, capacity, least, std::numeric_limits<double>::infinity(), fits,
      [](double mine, std::size_t, double rest) { return std::max(mine, rest); },
      [](double mine, double best) { return mine >= best; });
}

/// Of all cuts whose largest work / capacity is at most `limit`, the one over which the fewest bytes pass.
///
/// @param boundary  by item: bytes that cross the cut before it; items + 1 numbers, those at both ends are not read as cuts.
/// @return          the exact optimum, or none if nothing fits within the limit.
/// Complexity, Determinism, other parameters: as cut_in_proportion.
/// Source           ours.
template <std::invocable<std::size_t, std::size_t, std::size_t> Fits>
[[nodiscard]] proportional_cut lightest_cut(const std::vector<double>& work, const std::vector<double>& capacity, std::size_t least, double limit,
                                            const std::vector<double>& boundary, const Fits& fits) {
  return detail::cut_stages(
      work, capacity, least, limit * (1 + 1e-12), fits,
      [&](double, std::size_t end, double rest) { return (end < work.size() ? boundary[end] : 0) + rest; },
      [](double, double) { return false; });
}

}  // namespace hetplan::adapt
