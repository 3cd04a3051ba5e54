// SPDX-License-Identifier: BSL-1.0
#pragma once
/// In which orders a search takes the devices of a cluster: the door for orderings, and the ones that ship.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/partition/search_tables.hpp>

namespace hetplan::partition {

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

/// A callable that makes device spaces, at least one, of the classes of the tables: what a search takes one after the other. No group
/// is larger than largest_group. Pure.
template <class O>
concept device_ordering = requires(const O& o, const search_tables& t, int largest_group) {
  { o(t, largest_group) } -> std::same_as<std::vector<device_space>>;
};

template <class O>
consteval bool check_device_ordering() {
  static_assert(device_ordering<O>,
                "device_ordering needs: std::vector<hetplan::partition::device_space> operator()(const hetplan::partition::search_tables&, "
                "int largest_group) const");
  return device_ordering<O>;
}

/// orders_to_search.
struct affordable_orders {
  double most_moves = affordable_moves;
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const {
    return orders_to_search(t, largest_group, most_moves);
  }
};
/// by_memory alone.
struct memory_first {
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const {
    return {by_memory(t, largest_group)};
  }
};

/// Holds any ordering by value. Of an empty one: invalid_input.
class any_device_ordering {
 public:
  template <class O>
    requires(!std::same_as<O, any_device_ordering>)
  any_device_ordering(O o) {
    static_assert(check_device_ordering<O>());
    if constexpr (device_ordering<O>) orders_ = std::move(o);
    require_function(orders_, "any_device_ordering", "a device ordering, such as affordable_orders{}");
    users_ = !std::same_as<O, affordable_orders> && !std::same_as<O, memory_first>;
  }

  /// Throws  invalid_model (no device space; one of other classes than the tables', or with a group, a state or a move that is none: see
  ///         device_space).
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const;

 private:
  std::function<std::vector<device_space>(const search_tables&, int)> orders_;
  bool users_ = false;
};

static_assert(check_device_ordering<affordable_orders>() && check_device_ordering<memory_first>() &&
              check_device_ordering<any_device_ordering>());

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/device_orders.ipp>
#endif
