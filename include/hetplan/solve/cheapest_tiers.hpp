// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Which weights to put below a device's memory: a knapsack that frees so many bytes at the least time.

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <hetplan/core/version.hpp>

namespace hetplan {

/// Equal pieces, each of which may stay or go into one of several tiers.
struct tier_item {
  int count = 1;
  double freed = 0;                 ///< bytes of memory that each frees where it was
  double weight = 0;                ///< bytes that each takes of a tier
  std::vector<double> cost_s = {};  ///< by tier, >= 0; infinite where it may not go

  friend bool operator==(const tier_item&, const tier_item&) = default;
};

struct tier_choice {
  double cost_s = 0;
  std::vector<std::vector<int>> taken = {};  ///< by item, then tier
  bool optimal = true;                       ///< false: the search ended before it had seen all
};

/// Returns the cheapest way to free `need` bytes within the tiers' room; nothing if there is none, or if none was found in time.
///
/// Branch and bound over pairs of item and tier, those with the least time per byte first; the bound is the fractional cover by the pairs
/// that are left. Few distinct items, as in models of equal blocks, are quick, however many of each there are.
///
/// @param need        bytes; nothing moves if it is not above 0.
/// @param room        bytes by tier; both are kept to a part in 10^9.
/// @param most_nodes  after so many nodes the best so far is returned.
/// Complexity         O(nodes x pairs).
/// Determinism        ties: the choice found first.
/// Source             ours: the knapsack of bytes freed against seconds added.
[[nodiscard]] std::optional<tier_choice> cheapest_tiers(std::span<const tier_item> items, double need, std::span<const double> room,
                                                        long long most_nodes = 1'000'000);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/solve/cheapest_tiers.ipp>
#endif
