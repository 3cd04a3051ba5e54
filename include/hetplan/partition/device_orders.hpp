// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Orders in which a search assigns the devices of a cluster to stages: the concept of orderings, and the shipped ones.

#include <concepts>
#include <functional>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/partition/search_tables.hpp>

namespace hetplan::partition {

/// Largest number of moves (moves_of_every_order) for which a search covers all device orders by default.
inline constexpr double affordable_moves = 2000;

/// Returns the device space of one order: largest memory first, classes of equal memory in the order of the tables.
/// Source  Asteroid, section 3.3: early stages keep most activations.
[[nodiscard]] device_space by_memory(const search_tables& t, int largest_group);

/// Returns the space of all device orders if it has at most `most_moves` moves. Otherwise returns up to three spaces of one order each: the
/// head stage, which keeps most activations, on the classes with the most memory, on the fastest, and on the slowest.
///
/// Complexity  see every_order and in_class_order.
/// Source      ours; Dora, section 4.1, searches one order.
[[nodiscard]] std::vector<device_space> orders_to_search(const search_tables& t, int largest_group, double most_moves = affordable_moves);

/// A callable that returns the device spaces of a search, at least one, which are searched one after the other. Their classes are
/// search_tables::classes, and no group has more than largest_group devices. Pure. Ships: `affordable_orders`, `memory_first`.
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

/// The ordering orders_to_search.
struct affordable_orders {
  double most_moves = affordable_moves;
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const {
    return orders_to_search(t, largest_group, most_moves);
  }
};
/// The ordering by_memory.
struct memory_first {
  [[nodiscard]] std::vector<device_space> operator()(const search_tables& t, int largest_group) const {
    return {by_memory(t, largest_group)};
  }
};

/// Type-erased device ordering, held by value. Throws invalid_input if constructed from an empty callable.
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

  /// Throws  invalid_model (no device space; classes that are not those of the tables; an invalid group, state or move: see device_space).
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
