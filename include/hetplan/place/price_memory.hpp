// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where memory binds, bytes have prices: which parts run where, and what nothing within memory can beat.

#include <vector>

#include <hetplan/place/known_parts.hpp>
#include <hetplan/place/operator_schedule.hpp>

namespace HETPLAN_NAMESPACE::place {

struct priced_schedule {
  operator_schedule schedule;      ///< within memory; or none found
  std::vector<double> price = {};  ///< by device [s per byte], at which a path of parts nearly kept memory
};

/// The best schedule within memory that is met while prices rise where a device holds too much and fall where it has room. Every part
/// has the choice of its best schedule and of one on a milestone's device alone. At last, the path that exceeds memory least is repaired.
///
/// @param length_s  of the shortest path without prices.
/// Complexity       200 rounds of the shortest path, and of a schedule of all where one fits.
/// Determinism      yes.
/// Source           Lagrangian relaxation of Moirai's eq. 5; prices are tilted along the path, because equal layers would all move at once.
[[nodiscard]] priced_schedule schedule_by_prices(known_parts& known, double length_s);

/// At prices of bytes, every part costs at least its linear program's optimum, and all capacity is paid back. Prices move towards what
/// the programs' solutions hold.
///
/// @param price  to begin with.
/// @return       0 without a solver.
/// Complexity    12 rounds of a few linear programs.   Source  the dual of the same relaxation.
[[nodiscard]] double bound_by_prices(known_parts& known, std::vector<double> price);

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/price_memory.ipp>
#endif
