// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The mixed-integer program of a placement table: which device runs which operator when, for a solver behind the milp_solver door.

#include <cstddef>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_columns.hpp>
#include <hetplan/place/placement_rules.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/solve/milp.hpp>

namespace HETPLAN_NAMESPACE::place {

/// `printed`: Moirai's eqs. 4-8 as they stand (printed_rows.hpp). `tight`: the same problem with a close relaxation (tight_rows.hpp).
enum class formulation { printed, tight };

/// Minimises the makespan, in units of a schedule that is known; without one, of all times and all transfers one after another, which no
/// optimum exceeds. The program's limits leave that schedule in, and everything shorter.
///
/// Only integers of an answer are believed: they say devices and orders; times are worked out again from the table.
/// The table must outlive it.
/// Complexity  the formulation's.   Source  Moirai, section III-D.
class placement_program {
 public:
  /// @param known  a schedule of the table under these rules, with a makespan above 0; or none (not found()).
  placement_program(const placement_table& t, const placement_rules& r, const operator_schedule& known, formulation f);

  [[nodiscard]] const milp_problem& problem() const { return columns_.program; }
  [[nodiscard]] double unit_s() const { return columns_.unit_s; }

  /// A value for every column, of which the integers say what a schedule is; to begin with.
  [[nodiscard]] std::vector<double> start_of(const operator_schedule& s) const;
  /// The schedule of an answer: every node as early as its order on its machines allows. None: an operator has no device, or a transfer no
  /// way. Memory is not looked at.
  ///
  /// Complexity  O(nodes^2 + orders).
  [[nodiscard]] operator_schedule read(const std::vector<double>& x) const;

  /// Excludes placements that overfill a device as this one does: solvers keep a row within a tolerance, and memory may be full to the
  /// byte. False: nothing is overfilled.
  bool forbid_overflow(const std::vector<std::size_t>& device);

 private:
  placement_columns columns_;
};

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_program.ipp>
#endif
