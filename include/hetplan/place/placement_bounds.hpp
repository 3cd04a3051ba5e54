// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What no schedule of a placement table can beat, whatever contends.

#include <vector>

#include <hetplan/core/status.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

/// Lower bounds on the makespan [s], each for all placements within memory, any contention and either rule of copies.
struct placement_bounds {
  double path_s = 0;             ///< the longest path, with the best device at each operator and its transfers
  double load_s = 0;             ///< all work, shared out in fractions over devices within memory
  double path_and_memory_s = 0;  ///< a longest path whose devices have room for all operators
  double interval_s = 0;         ///< work that must lie in an interval of time, over all devices
  hetplan::status status = {};   ///< infeasible: no placement can be

  [[nodiscard]] double best_s() const;
};

/// Prices that make a bound of the load: those of devices' seconds sum to 1.
struct load_prices {
  std::vector<double> of_second = {};  ///< by device
  std::vector<double> of_byte = {};    ///< by device [s per byte]
  double paid_for_capacity = 0;        ///< of_byte times the devices' capacities
  double bound_s = 0;                  ///< the sum over operators of their least price, less what is paid for capacity
};

/// Complexity  O(rounds x operators x devices), 200 rounds.   Source  see bounds_of.
[[nodiscard]] load_prices load_prices_of(const placement_table& t);

/// All of them.
///
/// path: the longest of min over devices k of (longest way to v on k, v on k, longest way from there), ways relaxed to trees (tails_s).
/// load: for prices w of devices that sum to 1 and prices m of their bytes, the sum over operators of the least w_k t_k + m_k bytes,
/// less m times capacity, is a bound (Lagrange); subgradient steps look for good prices. path_and_memory: the same with prices
/// of bytes and one longest path, whose best devices are found by dynamic programming; other operators add only their bytes' prices.
/// interval: where the work that cannot leave [a, b] even if all is done by the best bound exceeds devices x (b - a), the end moves on.
///
/// Complexity   O((operators x devices + edges x devices^2) + rounds x operators x devices + points^2 x operators); 200 rounds, at most
///              48 points of time at which intervals begin or end.
/// Determinism  yes.
/// Source       Fernandez and Bussell, 1973, for intervals; the load is the relaxation of Moirai's eqs. 4c, 5 and 6; the rest is ours.
[[nodiscard]] placement_bounds bounds_of(const placement_table& t);

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_bounds.ipp>
#endif
