// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search over a layer sequence reads, worked out once for all microbatch sizes and device orders.

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

// Which groups of devices a search may take, one after the other: all orders of a few devices, or runs of one order.

/// Devices that nothing tells apart form a class; a group is a number of devices of each class. A search starts in
/// state 0 with no device taken and moves to later states by taking groups, the group of the last stage first.
///
/// Source  the n of Dora's Q(j, s, n) (section 4.1, eqs. 3-5), the first n devices, widened to any set of states. Own:
///         classes, and that devices may be left out.
struct device_space {
  struct part {
    std::size_t of_class;
    int devices;
    friend auto operator<=>(const part&, const part&) = default;
  };
  using device_group = std::vector<part>;  ///< ascending classes
  struct move {
    std::size_t group, to;
  };
  std::vector<std::vector<device_id>> classes;
  std::vector<device_group> groups;
  std::vector<std::vector<int>> left;    ///< by state: devices of each class that later moves may still take
  std::vector<std::vector<move>> moves;  ///< by state; targets have larger numbers

  [[nodiscard]] std::size_t states() const { return moves.size(); }
  /// The devices of a group when nothing else is taken, class by class: what stands for all groups of that kind.
  [[nodiscard]] std::vector<device_id> example(std::size_t g) const;
};

namespace detail {
/// What is wrong with a space of a cluster of so many devices, as it stands behind the space's name; nothing: its groups, states and moves
/// are in order.
[[nodiscard]] std::optional<std::string> device_space_fault(const device_space& s, std::size_t all_devices, int largest_group);
}  // namespace detail

/// Throws      invalid_input: a device that the cluster does not have; a group, a state or a move that is none.
/// Complexity  O(moves x classes).
void require_device_space(const device_space& s, const cluster& c, const char* who);

/// Does exchanging two devices leave the network as it is, up to the names of its resources?
///
/// Only routes of the two change. A resource that another route uses too keeps its name.
///
/// Complexity  O(devices^2 * resources on a route) to build; O(devices * resources on a route) to ask.
/// Source      own.
class exchange_test {
 public:
  explicit exchange_test(const cluster& c);

  [[nodiscard]] bool operator()(device_id a, device_id b);

 private:
  [[nodiscard]] bool match(device_id a, device_id b);
  /// May two routes trade places? Then their resources do.
  [[nodiscard]] bool trade_places(const route* x, const route* y);
  [[nodiscard]] bool become(resource_id u, resource_id v);

  const cluster& cluster_;
  std::vector<std::uint32_t> uses_, of_the_two_;  ///< by resource: routes that use it, of all and of the two devices
  std::vector<std::optional<resource_id>> image_, preimage_;
  std::vector<resource_id> seen_;
};

/// Classes of devices: alike in all that `same(a, b)` compares, and exchangeable in the network.
///
/// Complexity   O(devices x classes) questions to `same` and to exchange_test.
/// Determinism  ordered by their first device; ids ascend inside.
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

/// How many moves `every_order` makes, counting for each state the one that takes nothing. Source: own.
[[nodiscard]] double moves_of_every_order(const std::vector<std::vector<device_id>>& classes);

/// More moves than `every_order` makes room for: one takes 16 bytes, and a search looks at each of them for every boundary.
inline constexpr double most_moves_of_every_order = 1e8;

/// The state is how many devices of each class are taken: every order, every subset, every mixed group.
///
/// Complexity  prod (n_c + 1) states, prod (n_c + 1)(n_c + 2) / 2 - states moves for classes of n_c devices.
/// Throws      invalid_input (no devices, an empty class, more than most_moves_of_every_order moves).
/// Source      own; Dora's recurrence takes the devices in one order.
[[nodiscard]] device_space every_order(std::vector<std::vector<device_id>> classes, int largest_group);

/// Classes stand in one order, head stage first; the state is how many devices have been passed, from the end.
/// A group is the next devices in the row; the rest of a class, or whole classes, may be left out before it.
///
/// @param order  a permutation of the class numbers.
/// Complexity    N + 1 states, O(N G classes) moves for N devices and groups of at most G.
/// Source        Dora, section 4.1, eqs. 3-5: the devices in one order. Deviation: some may be left out. Which order is the
///               caller's business (Asteroid, section 3.3: largest memory first).
[[nodiscard]] device_space in_class_order(std::vector<std::vector<device_id>> classes, std::span<const std::size_t> order,
                                          int largest_group);

/// The sequence's times, bytes and cuts, and the classes of devices that nothing in them tells apart.
///
/// Complexity  that of prefix_table; classes: O(N * classes * (N + blocks * distinct shares)) for N devices.
/// Throws      invalid_model where a model answers what its concept forbids.
/// Source      the inputs of Dora's Algorithm 1; interchangeable devices as classes: our own.
struct search_tables {
  const planning_graph& model;
  const layer_sequence& sequence;
  const hetplan::cluster& cluster;
  prefix_table table;
  sequence_cuts cuts;
  crossing_table crossings;
  std::vector<energy_slopes> slopes;            ///< by device
  std::vector<std::vector<device_id>> classes;  ///< largest memory first, then the faster, then the smaller id

  search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c, const any_cost_model& cost,
                const any_memory_model& memory, const any_energy_model& energy, const workload& w, int max_share);
  // A temporary is gone at the end of the line.
  search_tables(const planning_graph&& the_model_must_outlive_it, const layer_sequence&, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&& the_sequence_must_outlive_it, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&, const hetplan::cluster&& the_cluster_must_outlive_it, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;

  /// The layers of blocks [first, last), as a plan's stage lists them: by id; or, where boundaries between layers cost something, in the
  /// order of the row, which is what the table has priced.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// Seconds of one sample of the whole model.
  [[nodiscard]] double whole_model_s(device_id d) const;
};

// When nothing fits: the cut that comes nearest to the devices' memories, so that one can say what is missing.

/// The plan whose fullest device is least full, in units of its memory, over a device space; times do not matter.
/// Warm-up is 1 under 1F1B, which needs least. Of fullnesses that no number holds all are alike.
///
/// Shares: one sample to each device; then apportion with fullness for time.
///
/// Complexity  O(boundaries^2 x moves x microbatch size).
/// Throws      invalid_input: a device space that is none.
/// Determinism ties: the stage that ends later, then the smaller state behind it, then the earlier move.
/// Source      own: a bottleneck recurrence over the space of Dora, section 4.1, eqs. 3-5, with fullness for time.
/// @return     nothing where the space has no plan at all: no group is as small as the microbatch, or no move begins.
[[nodiscard]] std::optional<plan> least_overflow(const search_tables& t, const device_space& space, const plan& blank);

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/search_tables.ipp>
#endif
