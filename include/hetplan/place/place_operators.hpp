// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Places operators on accelerators and CPUs in contiguous parts so that the busiest device has least to do.

#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/place/contiguous_partition.hpp>
#include <hetplan/place/placement_units.hpp>

namespace hetplan::place {

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
///                Deviations: see contiguous_partition.hpp and placement_units.hpp.
[[nodiscard]] operator_placement place_operators(const placement_workload& w, const contiguous_options& o = {});

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/place_operators.ipp>
#endif
