// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The linear program of a placement table in which operators may be split over devices: a bound that sees paths, loads and transfers at
/// once.

#include <cstddef>
#include <vector>

#include <hetplan/place/device_domains.hpp>
#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

// Operators and edges of a placement table that nothing tells apart.

/// An equitable partition: every operator of a class has as many edges of each class of edges as any other.
struct alike_operators {
  struct edge_class {
    std::size_t from = 0, to = 0;  ///< classes of operators
    std::size_t like = 0;          ///< one of its edges
    std::size_t size = 0;
  };
  std::vector<std::size_t> class_of = {};  ///< by operator, numbered by first occurrence
  std::vector<std::size_t> like = {};      ///< by class: its first operator
  std::vector<std::size_t> size = {};      ///< by class
  std::vector<edge_class> edges = {};
};

/// The coarsest one that keeps times, bytes and sets of devices.
///
/// @param sets  of devices, by operator.
/// Complexity   O(rounds x (operators + edges) log), as many rounds as the longest way on which a difference spreads.
/// Source       colour refinement (Weisfeiler and Leman, 1968).
[[nodiscard]] alike_operators find_alike_operators(const placement_table& t, const std::vector<device_set>& sets);

struct relaxation_options {
  std::size_t most_classes = 64;        ///< of operators that are alike; larger programs are left alone
  std::size_t most_columns = 16'000;    ///< likewise
  std::vector<double> byte_price = {};  ///< by device, seconds per byte that an operator holds there; empty: none
  std::vector<lp_basis> start = {};     ///< of the same table and limit at other prices
};

struct relaxed_bound {
  double bound_s = 0;                   ///< no schedule is shorter; with prices: no makespan plus what is paid for bytes
  std::vector<lp_basis> bases = {};     ///< to start from at other prices
  std::vector<double> held_bytes = {};  ///< by device, in the solution of the program; empty: there is none
  long long steps = 0;                  ///< that the solver's pivots count as; see step_budget
};

/// Columns: the share of each operator on each device, of each edge between each two (shares of an edge sum to those of its ends), starts.
/// Rows: paths, one device's worth of each operator, memory, and for every device and every channel its load, within the window that
/// device_domains leaves it below the limit; which devices are used at all is tried out, up to 16 ways.
///
/// Operators that are alike (colour refinement of the graph) are one class: the average of a solution over alike operators is one, too, so
/// that the coarse program has the same optimum. A layer of sixteen equal heads is as small as one of one head.
/// Contention: `none` has no channels; `per_link` and `one_port` have those of the rules; under `shared` a byte keeps a resource busy for
/// device_pair::busy_s_per_byte, however it is shared.
///
/// @param limit_s  bounds beyond it are cut to it; a schedule's makespan, or infinite. With prices: infinite.
/// @return         0 where there are too many classes or devices (64), or no solver.
/// Complexity      classes x devices + classes of edges x devices^2 columns.
/// Determinism     the solver's.
/// Source          Moirai, eqs. 4-8 relaxed. Dimension reduction by colour refinement: Grohe, Kersting, Mladenov and
///                 Selman, ESA 2014.
[[nodiscard]] relaxed_bound relax_placement(const placement_table& t, const placement_rules& r, double limit_s, const any_lp_solver& lp,
                                            const relaxation_options& options = {});

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/relaxed_placement.ipp>
#endif
