// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Places operators on accelerators and CPUs in contiguous parts so that the busiest device has least to do.

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/place/contiguous_partition.hpp>
#include <hetplan/place/placement_table.hpp>

namespace hetplan::place {

// What a placement cannot separate, merged: colors, cycles between them, and leaves that cost nothing.

/// Units of operators, numbered 0, 1, ...; each is on one device.
struct placement_units {
  /// Outputs that the same units make or read: a part that holds some of these units but not all pays for the transfer.
  struct tensor {
    double transfer_s = 0;
    std::vector<std::size_t> units = {};  ///< at least two
  };

  std::vector<std::size_t> unit_of = {};                        ///< by operator
  std::vector<std::pair<std::size_t, std::size_t>> edges = {};  ///< between units; no cycle, none twice
  std::vector<tensor> tensors = {};
  std::vector<double> accelerator_s = {}, cpu_s = {};  ///< by unit; infinite where an accelerator cannot run it
  std::vector<double> size_bytes = {};
  bool leaves_take_memory = false;  ///< a merged leaf has a size and memory could be short: merging may have lost the optimum

  [[nodiscard]] std::size_t size() const { return cpu_s.size(); }
};

namespace detail {

/// Names that are used, renumbered 0, 1, ... by first use.
std::size_t renumber(std::vector<std::size_t>& label);

}  // namespace detail

/// Merges what is on one device in every placement, and leaves where that loses nothing: operators of a color, units on a common
/// cycle of the order that contiguity asks for, and units without work that hang on a single other one.
///
/// @param w       checked by check_placement_workload.
/// Complexity     O(rounds (operators + edges) log), a round per operator in the longest chain of free leaves.
/// Determinism    units are numbered by their first operator.
/// Source         Tarnawski et al., NeurIPS 2020 (colors, training workloads), and what their published program does before it searches
///                (backward operators without a forward partner, circles, leaves). Deviations: a leaf is merged only where its tensors
///                concern its neighbour, so that the optimum without memory limit is kept; where memory could be short, the result
///                says so.
[[nodiscard]] placement_units make_placement_units(const placement_workload& w);

// What a device has to do at least that has a given unit: the cheapest set of units around it, by minimum cuts.

namespace detail {

/// Maximum flow along shortest augmenting paths. A flow that ends early is still a flow: its value bounds the cut from below.
class flow_network {
 public:
  explicit flow_network(std::size_t nodes) : out_(nodes) {}

  void add_edge(std::size_t from, std::size_t to, double capacity);
  /// The largest flow; afterwards reached() is the side of the source in a minimum cut.
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

/// The largest load of every placement is at least this [s]: some device has the unit that is most expensive to have, even in the best
/// company, contiguous or not, whatever memory says.
///
/// For each unit, the least of `work + transfers` over all sets that hold it is a minimum cut: a unit in the set pays its work, a
/// tensor with units on both sides its transfer. A unit may also go to a CPU alone.
///
/// Complexity     a maximum flow in units + 2 tensors nodes for some of the units: a set that was found speaks for all units in it.
/// Determinism    units in order of their own work, then number.
/// Source         ours; minimum cuts for such sums: Picard, "Maximal closure of a graph", Management Science 22, 1976.
[[nodiscard]] double cheapest_part_bound(const placement_units& u, int accelerators, int cpus);

/// The load of a part of a placement workload's units: kind 0 are accelerators, kind 1 CPUs.
///
/// Source  Tarnawski et al., NeurIPS 2020, computational model; the same load as device_loads.
class placement_load {
 public:
  /// @param units  must outlive this.
  placement_load(const placement_units& units, double memory_bytes);

  void add(std::size_t unit);
  void remove(std::size_t unit);
  [[nodiscard]] double load(std::size_t kind) const;
  [[nodiscard]] double work(std::size_t unit, std::size_t kind) const;

 private:
  struct sums {
    double accelerator_s = 0, cpu_s = 0, size_bytes = 0;
    double transfer_s = 0;  ///< of tensors that the part holds some units of but not all
  };

  const placement_units& units_;
  double memory_bytes_;
  std::vector<std::vector<std::size_t>> tensors_of_;  ///< by unit
  std::vector<std::size_t> inside_;                   ///< by tensor: its units in the part
  std::vector<sums> sums_{sums{}};                    ///< after each add: taking back leaves no rounding behind
};

static_assert(check_part_load<placement_load>());

/// Where operators go.
struct operator_placement {
  hetplan::status status = {};           ///< as ideal_partition's
  std::vector<std::size_t> device = {};  ///< of each operator: accelerators first, then CPUs; empty where infeasible
  std::vector<seconds> loads = {};       ///< of each device
  seconds value = seconds(std::numeric_limits<double>::infinity());  ///< the largest of them
  seconds bound = {};                                                ///< no contiguous placement has a smaller one
  std::size_t units = 0, ideals = 0;                                 ///< of the graph after merging; ideals 0: not known
  long long pairs = 0;                                               ///< nested ideals whose difference was weighed

  /// By how much the value may exceed the optimum, relative to it; 0: proven optimal.
  [[nodiscard]] double gap() const { return value == bound ? 0 : value / bound - 1; }
};

/// The best placement along linear orders of the graph: fast for any size.
///
/// @return        as linear_partition; `bound` is also cheapest_part_bound.
/// Throws         invalid_input: as check_placement_workload.
[[nodiscard]] operator_placement place_operators_in_line(const placement_workload& w);

/// The best contiguous placement: forward operators of a device lie between two nested ideals, backward ones are with the forward
/// ones of their color.
///
/// @return        as contiguous_partition. Where merged leaves could have cost the optimum (placement_units), the bound is the optimum
///                without memory limit: gap 0 still means proven.
/// Complexity     of contiguous_partition in units.
/// Throws         invalid_input: as check_placement_workload.
/// Determinism    ties as in ideal_dp.
/// Source         Tarnawski et al., "Efficient Algorithms for Device Placement of DNN Graph Operators", NeurIPS 2020.
///                Deviations: see contiguous_partition.hpp and place_operators.hpp.
[[nodiscard]] operator_placement place_operators(const placement_workload& w, const contiguous_options& o = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/place_operators.ipp>
#endif
