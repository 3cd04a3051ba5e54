// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Optimum over all placements by mixed-integer programming, the reference for small graphs.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/place/tight_rows.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan::place {

/// Formulation of the program. `printed`: Moirai's eqs. 4-8 as they stand (add_printed_rows). `tight`: the same problem with a close
/// relaxation (tight_rows.hpp).
enum class formulation { printed, tight };

/// Mixed-integer program of a placement table for a milp_solver. It minimises the makespan in units of a known schedule's makespan;
/// without one, of the sum of all times and transfers, which no optimum exceeds. Its limits admit that schedule and everything shorter.
/// Only the integers of an answer count, as devices and orders; times are recomputed from the table. The table must outlive the program.
/// Complexity  the formulation's.   Source  Moirai, section III-D.
class placement_program {
 public:
  /// @param known  a schedule of the table under these rules, with a makespan above 0; or none (not found()).
  placement_program(const placement_table& t, const placement_rules& r, const operator_schedule& known, formulation f);

  [[nodiscard]] const milp_problem& problem() const { return columns_.program; }
  [[nodiscard]] double unit_s() const { return columns_.unit_s; }

  /// Returns a value for every column as a start for a solver; the integers define the schedule.
  [[nodiscard]] std::vector<double> start_of(const operator_schedule& s) const;
  /// Returns the schedule of an answer, with every node as early as its order on its machines allows; none if an operator has no device
  /// or a transfer no route. Memory is not checked.
  /// Complexity  O(nodes^2 + orders).
  [[nodiscard]] operator_schedule read(const std::vector<double>& x) const;

  /// Excludes placements that overfill a device as this one does, because solvers keep a row within a tolerance and memory may be full to
  /// the byte. Returns false if no device is overfilled.
  bool forbid_overflow(const std::vector<std::size_t>& device);

 private:
  placement_columns columns_;
};

namespace detail {

/// Dialogue with a solver: the next program to solve, and the schedule and bound that its answers give.
class placement_questions {
 public:
  placement_questions(const placement_table& t, const placement_rules& r, const operator_schedule& known, formulation f);

  [[nodiscard]] bool open() const { return open_; }
  [[nodiscard]] const milp_problem& problem() const { return program_.problem(); }
  [[nodiscard]] std::vector<double> start() const { return best_.found() ? program_.start_of(best_) : std::vector<double>{}; }
  void take(const milp_solution& s);
  [[nodiscard]] operator_schedule answer() &&;

 private:
  void end(const std::string& why);
  void raise_bound(double bound_s);

  const placement_table& table_;
  placement_rules rules_;    ///< of the program
  bool shares_;              ///< true under the caller's contention::shared
  operator_schedule known_;  ///< under contention::shared, the known schedule as given
  operator_schedule best_;
  double given_bound_s_;
  placement_program program_;
  bool open_ = true;
  int overfilled_ = 0;
};

}  // namespace detail

/// Solves the program of a table, starting from the known schedule if the solver takes a start.
/// @param known  a schedule of the table under these rules, whose makespan is the cut-off; or none (not found()).
/// @return       feasible: proven optimal within the solver's tolerance, the bound is the makespan. stopped: the solver met a limit or was
///               wrong; then the better of `known` and the solver's schedule, with the best known bound. none found: the same without a
///               schedule. infeasible: the solver says so, and no schedule is known. steps: nodes of the solver's tree. Under
///               contention::shared transfers take turns, latencies included, and the bound is that of `known`.
/// Complexity    exponential.  Determinism  the solver's.
/// Throws        invalid_input (a known schedule that breaks a rule).
/// Source        Moirai, section III-D, eqs. 4-8. Deviations: see add_printed_rows; times are recomputed from the solver's integers.
template <milp_solver Solver>
[[nodiscard]] operator_schedule solve_placement(const placement_table& t, const placement_rules& r, const operator_schedule& known,
                                                const Solver& solver, formulation f = formulation::tight) {
  static_assert(check_milp_solver<Solver>());
  detail::placement_questions questions(t, r, known, f);
  while (questions.open()) questions.take(solve_from(solver, questions.problem(), questions.start()));
  return std::move(questions).answer();
}

}  // namespace hetplan::place

#ifndef HETPLAN_SEPARATE
#include <hetplan/place/solve_placement.ipp>
#endif
