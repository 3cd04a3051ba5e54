// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which orders a search takes the devices of a cluster.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <hetplan/partition/search_tables.hpp>

namespace hetplan::partition {

/// All orders of the devices are searched up to so many moves.
inline constexpr double affordable_moves = 2000;

/// Largest memory first; classes of equal memory as the tables have them.
///
/// Source  Asteroid, section 3.3: early stages keep most activations.
[[nodiscard]] inline device_space by_memory(const search_tables& t, int largest_group) {
  std::vector<std::size_t> order(t.classes.size());  // the tables' own
  std::iota(order.begin(), order.end(), std::size_t{0});
  return in_class_order(t.classes, order, largest_group);
}

/// All orders of the devices where that makes no more than `most_moves` moves of the search; else three: the head stage, which
/// keeps most activations, on the classes with most memory, on the fastest and on the slowest.
///
/// Complexity  see every_order and in_class_order.
/// Source      Dora, section 4.1, searches one order; ours.
[[nodiscard]] inline std::vector<device_space> orders_to_search(const search_tables& t, int largest_group,
                                                                double most_moves = affordable_moves) {
  if (moves_of_every_order(t.classes) <= most_moves) return {every_order(t.classes, largest_group)};
  std::vector<std::size_t> roomiest(t.classes.size());
  std::iota(roomiest.begin(), roomiest.end(), std::size_t{0});
  std::vector<std::size_t> fastest = roomiest;
  std::stable_sort(fastest.begin(), fastest.end(), [&](std::size_t a, std::size_t b) {
    return t.whole_model_s(t.classes[a].front()) < t.whole_model_s(t.classes[b].front());
  });
  const std::vector<std::size_t> slowest(fastest.rbegin(), fastest.rend());
  std::vector<device_space> spaces;
  std::vector<std::vector<std::size_t>> seen;
  for (const auto& order : {roomiest, fastest, slowest}) {
    if (std::find(seen.begin(), seen.end(), order) != seen.end()) continue;
    seen.push_back(order);
    spaces.push_back(in_class_order(t.classes, order, largest_group));
  }
  return spaces;
}

}  // namespace hetplan::partition
