// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Small changes of orders that make them better.

#include <cstdint>
#include <vector>

#include <hetplan/schedule/order_beam.hpp>

namespace HETPLAN_NAMESPACE::schedule::detail {

/// Moves tasks of a device past a few others, at random but most often where the device waits, and keeps what is no worse: by the goal
/// and by how much devices exceed `target` together.
///
/// @param steps  tasks replayed, about at most; what is left when it ends earlier, because `target` is reached, stays.
/// @return       no worse than given, and within memory if that was.
/// Complexity    steps.   Determinism  the seed decides.   Source  ours.
[[nodiscard]] found_orders improved_orders(const tick_table& t, order_goal goal, const found_orders& given, ticks target, long long& steps,
                                           std::uint64_t seed);

}  // namespace HETPLAN_NAMESPACE::schedule::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/schedule/order_moves.ipp>
#endif
