// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What one stage on one group of devices adds to a plan: step times, reductions, memory, energy.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/network.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/partition/hand_out.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_graph.hpp>

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

/// Devices of one class that take equally many samples of each microbatch.
struct share_run {
  std::size_t of_class;
  int devices;
  int samples;
};

/// A stage on a group, its microbatch shared out.
struct placed_stage {
  double total_s = std::numeric_limits<double>::infinity();  ///< e = max over devices of f + b; infinite: no memory
  double backward_s = 0;                                     ///< max over devices
  double collective_s = 0;                                   ///< A: reductions and the optimizer's step
  int most_in_flight = 0;                                    ///< microbatches in flight up to which these shares fit
  bool exists = false;                                       ///< false: no memory, or a device would get no sample
};

/// One device of a stage.
struct device_part {
  double busy_s = 0;
  double energy_J = 0;  ///< dynamic
  double idle_W = 0;    ///< J per second of response
};

/// What the devices of a stage add to energy and limits.
struct stage_budget {
  double energy_J = 0;                                       ///< dynamic, one iteration (one whole run in generation)
  double idle_W = 0;                                         ///< J per second of response
  double limit_s = std::numeric_limits<double>::infinity();  ///< the largest response that they allow
  double stretch_s = 0;                                      ///< the least

  /// What both stages add.
  stage_budget& operator+=(const stage_budget& other) {
    energy_J += other.energy_J;
    idle_W += other.idle_W;
    limit_s = std::min(limit_s, other.limit_s);
    stretch_s = std::max(stretch_s, other.stretch_s);
    return *this;
  }
};

/// Asks a table about stages on groups of a device space, for one microbatch size; no share is larger than the table's.
///
/// Shares: each sample to the device that finishes it first within memory, which minimises the slowest device (see
/// hand_out); equal devices share evenly, so classes are asked, not devices. A group with an idle member is no stage:
/// the same group without it is.
///
/// Source  Dora, section 4.1, the stage terms of eqs. 3 and 4; shares: Asteroid, Algorithm 1; reductions: semantics, section 6.
class candidate_costs {
 public:
  candidate_costs(const prefix_table& table, const device_space& space, const cluster& c, const std::vector<energy_slopes>& slopes,
                  const plan& blank, bool keep_budgets);

  /// @param in_flight  microbatches whose activations stay; 0: without regard to memory.
  /// Complexity        O(1) for a group of one class, O(microbatch size * classes) for a mixed one.
  [[nodiscard]] placed_stage place(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;
  /// How the microbatch is shared out; equal shares of a class together, the larger first.
  [[nodiscard]] std::vector<share_run> shares(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// Is there memory for a microbatch at all? False once, false for every longer stage.
  [[nodiscard]] bool has_room(std::size_t first, std::size_t last, std::size_t group, int in_flight) const;

  /// What a stage exchanges that reads `in` and sends `out`: bytes per sample, each with the gradients of the way back.
  [[nodiscard]] stage_traffic traffic(std::pair<double, double> in, std::pair<double, double> out) const;
  /// One device of a stage over an iteration (a whole run in generation).
  [[nodiscard]] device_part part(std::size_t first, std::size_t last, std::size_t group, const share_run& r, const stage_traffic& t) const;
  /// Bytes that a device of a stage holds at most.
  [[nodiscard]] double held_bytes(std::size_t first, std::size_t last, int samples, int in_flight) const;
  /// What all devices of a stage add to energy and limits.
  [[nodiscard]] stage_budget budget(std::size_t first, std::size_t last, std::size_t group, int in_flight, const stage_traffic& t) const;
  [[nodiscard]] int repeats() const { return repeats_; }

 private:
  struct demand {
    double fixed, kept, cache;  ///< bytes; the latter two per sample, of one microbatch in flight and of all sequences
  };
  [[nodiscard]] demand demand_of(std::size_t first, std::size_t last) const;
  /// The largest share within memory.
  [[nodiscard]] int cap(const demand& need, std::size_t of_class, int in_flight) const;
  /// The largest number of microbatches in flight with which a share fits.
  [[nodiscard]] int fits(const demand& need, std::size_t of_class, int samples) const;
  [[nodiscard]] static int members(const device_space::device_group& g);
  [[nodiscard]] double reduction_s(std::size_t first, std::size_t last, std::size_t group) const;

  /// One class of a group while samples are handed out.
  struct filling : sample_taker {
    std::size_t of_class;
    device_id example;
  };

  /// Fills filled_; false if the memory of the group holds fewer samples.
  bool share_out(std::size_t first, std::size_t last, std::size_t group, const demand& need, int in_flight) const;

  const prefix_table& table_;
  const device_space& space_;
  const cluster& cluster_;
  const std::vector<energy_slopes>& slopes_;  ///< by device
  int size_, largest_, microbatches_;         ///< samples of a microbatch, of a share at most; microbatches
  bool training_, keep_budgets_;
  int repeats_;
  exchange_cost tied_;
  std::vector<transfer_cost> rings_;     ///< by group
  std::vector<double> limit_;            ///< bytes, by class
  mutable std::vector<filling> filled_;  ///< reused: a search asks millions of times
};

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/candidate_costs.ipp>
#endif
