// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Input of a search over a layer sequence, computed once for all microbatch sizes and device orders.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/offload_table.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/problem/planning_problem.hpp>

namespace hetplan::partition {

/// Search space of device groups. Indistinguishable devices form a class; a group is a number of devices of each class. A search starts in
/// state 0 with no device taken and moves to later states by taking groups, the group of the last stage first.
/// Source  n in Dora's Q(j, s, n) (section 4.1, eqs. 3-5), the first n devices, generalised to any set of states. Own: classes, and devices
///         that are left out.
struct device_space {
  struct part {
    std::size_t of_class;
    int devices;
    friend auto operator<=>(const part&, const part&) = default;
  };
  using device_group = std::vector<part>;  ///< in ascending order of classes
  struct move {
    std::size_t group, to;
  };
  std::vector<std::vector<device_id>> classes;
  std::vector<device_group> groups;
  std::vector<std::vector<int>> left;    ///< by state: number of devices of each class that later moves may take
  std::vector<std::vector<move>> moves;  ///< by state; targets have larger indices

  [[nodiscard]] std::size_t states() const { return moves.size(); }
  /// Returns the devices of a group if nothing else is taken, class by class: a representative of all groups of that composition.
  [[nodiscard]] std::vector<device_id> example(std::size_t g) const;
};

namespace detail {
/// Returns the first fault of a device space for a cluster of `all_devices` devices, worded to follow the name of the space; nothing if
/// groups, states and moves are valid.
[[nodiscard]] std::optional<std::string> device_space_fault(const device_space& s, std::size_t all_devices, int largest_group);
}  // namespace detail

/// Throws      invalid_input: a device that is not in the cluster; an invalid group, state or move.
/// Complexity  O(moves x classes).
void require_device_space(const device_space& s, const cluster& c, const char* who);

/// Test whether swapping two devices leaves the network unchanged up to the names of its resources. Only routes of the two devices change;
/// a resource that another route uses, too, keeps its name.
///
/// Complexity  O(devices^2 * resources on a route) to build; O(devices * resources on a route) per test.
/// Source      own.
class exchange_test {
 public:
  explicit exchange_test(const cluster& c);

  [[nodiscard]] bool operator()(device_id a, device_id b);

 private:
  [[nodiscard]] bool match(device_id a, device_id b);
  /// Returns true if two routes can trade places, and records that their resources do.
  [[nodiscard]] bool trade_places(const route* x, const route* y);
  [[nodiscard]] bool become(resource_id u, resource_id v);

  const cluster& cluster_;
  std::vector<std::uint32_t> uses_, of_the_two_;  ///< by resource: number of routes that use it, of all devices and of the two
  std::vector<std::optional<resource_id>> image_, preimage_;
  std::vector<resource_id> seen_;
};

/// Returns the classes of devices: equal by `same(a, b)` and interchangeable in the network.
///
/// Complexity   O(devices x classes) calls of `same` and of exchange_test.
/// Determinism  classes in the order of their first devices; ids ascend within a class.
/// Source       own.
template <std::predicate<const device&, const device&> Same>
[[nodiscard]] std::vector<std::vector<device_id>> device_classes(const cluster& c, Same&& same) {
  std::vector<std::vector<device_id>> classes;
  exchange_test exchangeable(c);
  for (const device& d : c.devices()) {
    const auto belongs = [&](const auto& members) { return same(c[members.front()], d) && exchangeable(members.front(), d.id); };
    const auto it = std::find_if(classes.begin(), classes.end(), belongs);
    if (it == classes.end()) classes.push_back({d.id});
    else it->push_back(d.id);
  }
  return classes;
}

/// Returns the number of moves of `every_order`, plus one per state for the empty move. Source: own.
[[nodiscard]] double moves_of_every_order(const std::vector<std::vector<device_id>>& classes);

/// Limit on the moves of `every_order`: a move takes 16 bytes, and a search visits each one for every boundary.
inline constexpr double most_moves_of_every_order = 1e8;

/// Returns the space of every order, every subset and every mixed group. A state is the number of devices taken from each class.
///
/// Complexity  prod (n_c + 1) states, prod (n_c + 1)(n_c + 2) / 2 - states moves for classes of n_c devices.
/// Throws      invalid_input (no devices, an empty class, more than most_moves_of_every_order moves).
/// Source      own; Dora's recurrence takes the devices in one order.
[[nodiscard]] device_space every_order(std::vector<std::vector<device_id>> classes, int largest_group);

/// Returns the space of one order of the classes, head stage first. A state is the number of devices passed, from the end. A group is the
/// next devices in the order; the rest of a class, or whole classes, may be skipped before it.
///
/// @param order  a permutation of the class indices.
/// Complexity    N + 1 states, O(N G classes) moves for N devices and groups of at most G.
/// Source        Dora, section 4.1, eqs. 3-5: devices in one order. Deviation: devices may be left out. The caller chooses the order
///               (Asteroid, section 3.3: largest memory first).
[[nodiscard]] device_space in_class_order(std::vector<std::vector<device_id>> classes, std::span<const std::size_t> order,
                                          int largest_group);

/// Devices that blocks of a sequence stay on (job::pins).
class block_pins {
 public:
  block_pins() = default;
  /// @param pinned  by layer id (planning_problem::pinned); empty: none.
  block_pins(const layer_sequence& sequence, std::span<const device_id> pinned);

  [[nodiscard]] bool any() const { return !pinned_.empty(); }
  /// Returns the device that a block stays on; invalid if it may be anywhere, or is to stay on several.
  [[nodiscard]] device_id of(std::size_t block) const { return any() ? of_block_[block] : device_id(); }
  /// Returns true if blocks [first, last) may be anywhere.
  [[nodiscard]] bool free(std::size_t first, std::size_t last) const { return !any() || pinned_[last] == pinned_[first]; }
  /// Returns true if a device alone may have them.   Complexity  O(1).
  [[nodiscard]] bool allow(std::size_t first, std::size_t last, device_id d) const {
    if (free(first, last)) return true;
    if (!is_pinned_to(d)) return false;
    const std::vector<std::uint32_t>& mine = on_[d.index()];
    return mine[last] - mine[first] == pinned_[last] - pinned_[first];
  }
  [[nodiscard]] bool is_pinned_to(device_id d) const { return any() && d.index() < on_.size() && !on_[d.index()].empty(); }

 private:
  std::vector<device_id> of_block_;
  std::vector<std::uint32_t> pinned_;           ///< prefix counts of pinned layers, by block
  std::vector<std::vector<std::uint32_t>> on_;  ///< the same by device; empty for devices without any
};

/// Times, bytes and cuts of a layer sequence, and the classes of devices that all of them treat alike.
///
/// Complexity  that of prefix_table; classes: O(N * classes * (N + blocks * distinct shares)) for N devices.
/// @param pinned  by layer id, the device that it stays on (planning_problem::pinned); may be empty.
/// Throws      invalid_model (a model violates its concept).
/// Source      the inputs of Dora's Algorithm 1; own: classes of interchangeable devices.
struct search_tables {
  const planning_graph& model;
  const layer_sequence& sequence;
  const hetplan::cluster& cluster;
  prefix_table table;
  sequence_cuts cuts;
  crossing_table crossings;
  std::vector<energy_slopes> slopes;            ///< by device
  memory_savers savers;                         ///< that every stage uses: recomputes; shards its state, if it has several devices
  offload_table offload;                        ///< of devices that have tiers below their memory
  block_pins pins;                              ///< a device that layers stay on is alone in its class
  std::vector<std::vector<device_id>> classes;  ///< by memory, largest first; then speed, fastest first; then id

  search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c, const any_cost_model& cost,
                const any_memory_model& memory, const any_energy_model& energy, const workload& w, int max_share, memory_savers use = {},
                std::span<const device_id> pinned = {});
  // A temporary would not outlive the tables.
  search_tables(const planning_graph&& the_model_must_outlive_it, const layer_sequence&, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int, memory_savers = {},
                std::span<const device_id> = {}) = delete;
  search_tables(const planning_graph&, const layer_sequence&& the_sequence_must_outlive_it, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int, memory_savers = {},
                std::span<const device_id> = {}) = delete;
  search_tables(const planning_graph&, const layer_sequence&, const hetplan::cluster&& the_cluster_must_outlive_it, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int, memory_savers = {},
                std::span<const device_id> = {}) = delete;

  /// Returns the layers of blocks [first, last) in the order of a plan's stage: by id, or in the order of the sequence, which the table has
  /// priced, if boundaries between layers have a cost.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// Returns the seconds per sample of the whole model on a device.
  [[nodiscard]] double whole_model_s(device_id d) const;
};

// Orders in which a search assigns the devices of a cluster to stages: the concept of orderings, and the shipped ones.

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
#include <hetplan/partition/search_tables.ipp>
#endif
