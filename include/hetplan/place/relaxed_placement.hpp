// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear relaxation of placement, in which operators may be split over devices: a bound from paths, loads and transfers at once.

#include <cstddef>
#include <vector>

#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Equitable partition of operators: every operator of a class has the same number of edges of each edge class.
struct alike_operators {
  struct edge_class {
    std::size_t from = 0, to = 0;  ///< classes of operators
    std::size_t like = 0;          ///< an edge of the class
    std::size_t size = 0;
  };
  std::vector<std::size_t> class_of = {};  ///< by operator, numbered by first occurrence
  std::vector<std::size_t> like = {};      ///< by class: its first operator
  std::vector<std::size_t> size = {};      ///< by class
  std::vector<edge_class> edges = {};
};

/// Returns the coarsest equitable partition that distinguishes times, bytes and sets of devices.
/// @param sets  allowed devices, by operator.
/// Complexity   O(rounds x (operators + edges) log), with as many rounds as the longest path along which a difference spreads.
/// Source       colour refinement (Weisfeiler and Leman, 1968).
[[nodiscard]] alike_operators find_alike_operators(const placement_table& t, const std::vector<device_set>& sets);

struct relaxation_options {
  std::size_t most_classes = 64;        ///< limit on the classes of operators; larger programs are not solved
  std::size_t most_columns = 16'000;    ///< limit on the columns; likewise
  std::vector<double> byte_price = {};  ///< by device, seconds per byte that an operator holds there; empty: no prices
  std::vector<lp_basis> start = {};     ///< bases of the same table and limit at other prices
};

struct relaxed_bound {
  double bound_s = 0;                   ///< lower bound on the makespan; with prices, on the makespan plus the price of held bytes
  std::vector<lp_basis> bases = {};     ///< start bases for other prices
  std::vector<double> held_bytes = {};  ///< by device, in the program's solution; empty without one
  long long steps = 0;                  ///< steps that equal the solver's pivots; see step_budget
};

/// Returns the bound of the relaxed program. Columns: the share of each operator on each device, of each edge on each pair of devices
/// (shares of an edge sum to those of its ends), starts. Rows: paths, a total share of 1 for each operator, memory, and the load of every
/// device and channel within the window that device_domains leaves it below the limit. Up to 16 sets of used devices are enumerated.
///
/// Operators that are alike (colour refinement of the graph) form one class. The average of a solution over alike operators is a
/// solution, too, so the coarse program has the same optimum. A layer of sixteen equal heads is as small as one of one head.
/// Contention: `none` has no channels; `per_link` and `one_port` have those of the rules; under `shared` a byte keeps a resource busy for
/// device_pair::busy_s_per_byte, in whatever way the resource is shared.
///
/// @param limit_s  cap on the bound: a schedule's makespan, or infinite. With prices: infinite.
/// @return         0 with too many classes or devices (64), or without a solver.
/// Complexity      classes x devices + classes of edges x devices^2 columns.
/// Determinism     the solver's.
/// Source          Moirai, eqs. 4-8 relaxed. Dimension reduction by colour refinement: Grohe, Kersting, Mladenov and Selman, ESA 2014.
[[nodiscard]] relaxed_bound relax_placement(const placement_table& t, const placement_rules& r, double limit_s, const any_lp_solver& lp,
                                            const relaxation_options& options = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/relaxed_placement.ipp>
#endif
