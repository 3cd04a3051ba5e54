// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which orders a search takes the devices of a cluster.

#include <vector>

#include <hetplan/partition/device_space.hpp>
#include <hetplan/partition/search_tables.hpp>

namespace HETPLAN_NAMESPACE::partition {

/// All orders of the devices are searched up to so many moves.
inline constexpr double affordable_moves = 2000;

/// Largest memory first; classes of equal memory as the tables have them.
///
/// Source  Asteroid, section 3.3: early stages keep most activations.
[[nodiscard]] device_space by_memory(const search_tables& t, int largest_group);

/// All orders of the devices where that makes no more than `most_moves` moves of the search; else three: the head stage, which
/// keeps most activations, on the classes with most memory, on the fastest and on the slowest.
///
/// Complexity  see every_order and in_class_order.
/// Source      Dora, section 4.1, searches one order; ours.
[[nodiscard]] std::vector<device_space> orders_to_search(const search_tables& t, int largest_group, double most_moves = affordable_moves);

}  // namespace HETPLAN_NAMESPACE::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/device_orders.ipp>
#endif
