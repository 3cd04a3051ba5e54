// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a device has to do at least that has a given unit: the cheapest set of units around it, by minimum cuts.

#include <cstddef>
#include <vector>

#include <hetplan/place/placement_units.hpp>

namespace hetplan::place {

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

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/cheapest_part.ipp>
#endif
