// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Contiguous placement of operators on accelerators and CPUs that minimises the load of the busiest device.

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/place/contiguous_partition.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

/// Units, which are groups of operators on one device, numbered 0, 1, ...
struct placement_units {
  /// Outputs that the same units make or read. A part with some but not all of these units pays for the transfer.
  struct tensor {
    double transfer_s = 0;
    std::vector<std::size_t> units = {};  ///< at least two
  };

  std::vector<std::size_t> unit_of = {};                        ///< by operator
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< between units; acyclic, without duplicates
  std::vector<tensor> tensors = {};
  std::vector<double> accelerator_s = {}, cpu_s = {};  ///< by unit; accelerator_s is infinite if no accelerator can run it
  std::vector<double> size_bytes = {};
  bool leaves_take_memory = false;  ///< true if merging may have lost the optimum: a merged leaf has a size and memory may be short

  [[nodiscard]] std::size_t size() const { return cpu_s.size(); }
};

namespace detail {

/// Renumbers labels 0, 1, ... by first use. Returns their number.
std::size_t renumber(std::vector<std::size_t>& label);

}  // namespace detail

/// Merges operators that are on one device in every placement: those of a color, and units on a cycle of the order that contiguity
/// requires. Also merges leaves, which are units without work next to a single other unit, if that loses nothing.
///
/// @param w       checked by check_placement_workload.
/// Complexity     O(rounds (operators + edges) log), a round per operator in the longest chain of free leaves.
/// Determinism    units are numbered by their first operator.
/// Source         Tarnawski et al., NeurIPS 2020 (colors, training workloads), and the preprocessing of their published program (backward
///                operators without a forward partner, circles, leaves). Deviations: a leaf is merged only if each of its tensors has its
///                neighbour, so that the optimum without memory limit is kept; if memory may be short, the result says so.
[[nodiscard]] placement_units make_placement_units(const placement_workload& w);

namespace detail {

/// Maximum flow along shortest augmenting paths. A flow that ends early is still a flow, whose value bounds the cut from below.
class flow_network {
 public:
  explicit flow_network(std::size_t nodes) : out_(nodes) {}

  void add_edge(std::size_t from, std::size_t to, double capacity);
  /// Returns the maximum flow. Afterwards reached() is the source side of a minimum cut.
  double maximum_flow(std::size_t source, std::size_t sink);
  [[nodiscard]] bool reached(std::size_t node) const { return reached_[node] != 0; }

 private:
  struct edge {
    std::size_t to;
    double capacity, left;
  };
  std::vector<edge> edges_;  ///< each followed by its reverse
  std::vector<std::vector<std::size_t>> out_;
  std::vector<char> reached_;
};

}  // namespace detail

/// Returns a lower bound [s] on the largest load of every placement, contiguous or not, memory aside: some device has the unit that is
/// most expensive to have, even in the best company. For each unit, the least `work + transfers` over all sets that contain it is a minimum
/// cut: a unit in the set pays its work, a tensor with units on both sides its transfer. A unit may also go to a CPU alone.
///
/// Complexity     a maximum flow in units + 2 tensors nodes for some of the units, as the set of one cut serves all units in it.
/// Determinism    units in order of their own work, then number.
/// Source         ours; minimum cuts for such sums: Picard, "Maximal closure of a graph", Management Science 22, 1976.
[[nodiscard]] double cheapest_part_bound(const placement_units& u, int accelerators, int cpus);

/// Load of a part of a placement workload's units; kind 0 are accelerators, kind 1 CPUs.
/// Source  Tarnawski et al., NeurIPS 2020, computational model; the same load as device_loads.
class placement_load {
 public:
  /// @param units  must outlive this object.
  placement_load(const placement_units& units, double memory_bytes);

  void add(std::size_t unit);
  void remove(std::size_t unit);
  [[nodiscard]] double load(std::size_t kind) const;
  [[nodiscard]] double work(std::size_t unit, std::size_t kind) const;

 private:
  struct sums {
    double accelerator_s = 0, cpu_s = 0, size_bytes = 0;
    double transfer_s = 0;  ///< of tensors with some but not all units in the part
  };

  const placement_units& units_;
  double memory_bytes_;
  std::vector<std::vector<std::size_t>> tensors_of_;  ///< by unit
  std::vector<std::size_t> inside_;                   ///< by tensor: number of its units in the part
  std::vector<sums> sums_{sums{}};                    ///< after each add, so that remove leaves no rounding error
};

static_assert(check_part_load<placement_load>());

/// Placement of operators on devices, with its loads and a bound.
struct operator_placement {
  hetplan::status status = {};                                       ///< as in ideal_partition
  std::vector<std::size_t> device = {};                              ///< by operator: accelerators first, then CPUs; empty if infeasible
  std::vector<seconds> loads = {};                                   ///< by device
  seconds value = seconds(std::numeric_limits<double>::infinity());  ///< largest load
  seconds bound = {};                                                ///< lower bound on the largest load of contiguous placements
  std::size_t units = 0, ideals = 0;                                 ///< of the merged graph; ideals: 0 if unknown
  long long pairs = 0;                                               ///< pairs of nested ideals whose difference was evaluated

  /// Returns the most by which the value exceeds the optimum, relative to the optimum; 0 if proven optimal.
  [[nodiscard]] double gap() const { return value == bound ? 0 : value / bound - 1; }
};

/// Returns the best placement along linear orders of the graph; fast for any size.
/// @return        as linear_partition; `bound` includes cheapest_part_bound.
/// Throws         invalid_input: as check_placement_workload.
[[nodiscard]] operator_placement place_operators_in_line(const placement_workload& w);

/// Returns the best contiguous placement: a device's forward operators lie between two nested ideals, and backward operators join the
/// forward ones of their color.
///
/// @return        as contiguous_partition. If merged leaves may have cost the optimum (placement_units), the bound is the optimum without
///                memory limit, and gap 0 still proves optimality.
/// Complexity     of contiguous_partition in units.
/// Throws         invalid_input: as check_placement_workload.
/// Determinism    ties as in ideal_dp.
/// Source         Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
///                Deviations: see contiguous_partition.hpp and make_placement_units.
[[nodiscard]] operator_placement place_operators(const placement_workload& w, const contiguous_options& o = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/place_operators.ipp>
#endif
