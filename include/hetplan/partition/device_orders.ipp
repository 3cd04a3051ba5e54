// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/device_orders.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::partition {

HETPLAN_INLINE device_space by_memory(const search_tables& t, int largest_group) {
  std::vector<std::size_t> order(t.classes.size());  // the tables' own
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

namespace detail {

/// What a user's space says of groups, states and moves, in the order in which one rests on the other.
HETPLAN_INLINE void check_device_space(const device_space& s, std::size_t number, int largest_group) {
  const auto fail = [&](const std::string& where, const std::string& what) {
    throw invalid_model("device ordering: space " + std::to_string(number) + (where.empty() ? "" : ", " + where) + ": " + what);
  };
  const auto text = [](auto x) { return std::to_string(x); };
  for (std::size_t g = 0; g < s.groups.size(); ++g) {
    const std::string where = "group " + text(g);
    if (s.groups[g].empty()) fail(where, "no devices; expected at least one");
    int all = 0;
    for (std::size_t i = 0; i < s.groups[g].size(); ++i) {
      const auto& [of_class, devices] = s.groups[g][i];
      if (of_class >= s.classes.size()) fail(where, "class " + text(of_class) + "; expected one of " + text(s.classes.size()));
      if (i > 0 && of_class <= s.groups[g][i - 1].of_class)
        fail(where, "class " + text(of_class) + " behind class " + text(s.groups[g][i - 1].of_class) + "; expected ascending classes");
      if (devices < 1 || static_cast<std::size_t>(devices) > s.classes[of_class].size())
        fail(where, text(devices) + " devices of class " + text(of_class) + "; expected 1 to " + text(s.classes[of_class].size()));
      all += devices;
    }
    if (all > largest_group) fail(where, text(all) + " devices; expected at most " + text(largest_group));
  }
  if (s.moves.empty() || s.moves.front().empty()) fail("state 0", "no moves; expected at least one");
  if (s.left.size() != s.states())
    fail("", "left has " + text(s.left.size()) + " states, moves " + text(s.states()) + "; expected as many");
  for (std::size_t state = 0; state < s.states(); ++state) {
    const std::string where = "state " + text(state);
    if (s.left[state].size() != s.classes.size())
      fail(where, "left names " + text(s.left[state].size()) + " classes; expected " + text(s.classes.size()));
    for (std::size_t c = 0; c < s.classes.size(); ++c) {
      if (s.left[state][c] < 0 || static_cast<std::size_t>(s.left[state][c]) > s.classes[c].size())
        fail(where, text(s.left[state][c]) + " devices of class " + text(c) + " are left; expected 0 to " + text(s.classes[c].size()));
    }
    for (std::size_t m = 0; m < s.moves[state].size(); ++m) {
      const auto& [group, to] = s.moves[state][m];
      const std::string move = where + ", move " + text(m);
      if (group >= s.groups.size()) fail(move, "group " + text(group) + "; expected one of " + text(s.groups.size()));
      if (to <= state || to >= s.states()) fail(move, "to state " + text(to) + "; expected a later one of " + text(s.states()));
    }
  }
  // No device twice: who is taken is left to nobody behind.
  for (std::size_t state = 0; state < s.states(); ++state) {
    for (std::size_t m = 0; m < s.moves[state].size(); ++m) {
      const auto& [group, to] = s.moves[state][m];
      std::vector<int> left = s.left[state];
      for (const auto& p : s.groups[group]) left[p.of_class] -= p.devices;
      for (std::size_t c = 0; c < left.size(); ++c) {
        if (left[c] < 0 || s.left[to][c] > left[c])
          fail("state " + text(state) + ", move " + text(m), "leaves " + text(s.left[to][c]) + " devices of class " + text(c) + " of " +
                                                                 text(s.left[state][c]) + " with group " + text(group) +
                                                                 "; expected at most " + text(std::max(0, left[c])));
      }
    }
  }
}

}  // namespace detail

HETPLAN_INLINE std::vector<device_space> any_device_ordering::operator()(const search_tables& t, int largest_group) const {
  std::vector<device_space> spaces = orders_(t, largest_group);
  if (spaces.empty()) throw invalid_model("device ordering: no device space; expected at least one");
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    const device_space& s = spaces[i];
    if (s.classes != t.classes)
      throw invalid_model("device ordering: a device space of " + std::to_string(s.classes.size()) +
                          " classes that are not those of the search tables; expected search_tables::classes");
    if (users_) detail::check_device_space(s, i, largest_group);
  }
  return spaces;
}

}  // namespace HETPLAN_NAMESPACE::partition
