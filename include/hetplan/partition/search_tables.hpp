// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Input of a search over a layer sequence, computed once for all microbatch sizes and device orders.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/plan/plan.hpp>

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

/// Times, bytes and cuts of a layer sequence, and the classes of devices that all of them treat alike.
///
/// Complexity  that of prefix_table; classes: O(N * classes * (N + blocks * distinct shares)) for N devices.
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
  std::vector<std::vector<device_id>> classes;  ///< by memory, largest first; then speed, fastest first; then id

  search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c, const any_cost_model& cost,
                const any_memory_model& memory, const any_energy_model& energy, const workload& w, int max_share);
  // A temporary would not outlive the tables.
  search_tables(const planning_graph&& the_model_must_outlive_it, const layer_sequence&, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&& the_sequence_must_outlive_it, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&, const hetplan::cluster&& the_cluster_must_outlive_it, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;

  /// Returns the layers of blocks [first, last) in the order of a plan's stage: by id, or in the order of the sequence, which the table has
  /// priced, if boundaries between layers have a cost.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// Returns the seconds per sample of the whole model on a device.
  [[nodiscard]] double whole_model_s(device_id d) const;
};

/// Returns the plan whose fullest device is least full, as a fraction of its memory, over a device space. Times are ignored. Warm-up is 1
/// under 1F1B, which needs the least memory. Fullnesses beyond the range of double count as equal. Shares: one sample to each device, then
/// apportion with fullness as time.
///
/// Complexity  O(boundaries^2 x moves x microbatch size).
/// Throws      invalid_input: an invalid device space.
/// Determinism ties: the stage that ends later, then the smaller state behind it, then the earlier move.
/// Source      own: a bottleneck recurrence over the space of Dora, section 4.1, eqs. 3-5, with fullness as time.
/// @return     nothing if the space has no plan: every group has more devices than a microbatch has samples, or state 0 has no moves.
[[nodiscard]] std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/search_tables.ipp>
#endif
