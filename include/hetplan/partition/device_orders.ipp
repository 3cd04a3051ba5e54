// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/device_orders.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include <hetplan/core/error.hpp>

namespace hetplan::partition {

HETPLAN_INLINE device_space by_memory(const search_tables& t, int largest_group) {
  std::vector<std::size_t> order(t.classes.size());  // search_tables::classes is sorted by memory, largest first
  std::iota(order.begin(), order.end(), std::size_t{0});
  return in_class_order(t.classes, order, largest_group);
}

HETPLAN_INLINE std::vector<device_space> orders_to_search(const search_tables& t, int largest_group, double most_moves) {
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

HETPLAN_INLINE std::vector<device_space> any_device_ordering::operator()(const search_tables& t, int largest_group) const {
  std::vector<device_space> spaces = orders_(t, largest_group);
  if (spaces.empty()) throw invalid_model("device ordering: no device space; expected at least one");
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    const device_space& s = spaces[i];
    if (s.classes != t.classes)
      throw invalid_model("device ordering: a device space of " + std::to_string(s.classes.size()) +
                          " classes that are not those of the search tables; expected search_tables::classes");
    if (!users_) continue;
    const std::string name = "device ordering: space " + std::to_string(i);
    if (const auto fault = detail::device_space_fault(s, t.cluster.size(), largest_group)) throw invalid_model(name + *fault);
    if (s.moves.front().empty()) throw invalid_model(name + ", state 0: no moves; expected at least one");
  }
  return spaces;
}

}  // namespace hetplan::partition
