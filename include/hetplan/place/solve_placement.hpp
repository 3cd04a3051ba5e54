// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The optimum over all placements, by mixed-integer programming: the reference for small graphs.

#include <cstddef>
#include <string>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_table.hpp>
#include <hetplan/place/tight_rows.hpp>
#include <hetplan/solve/milp.hpp>

namespace hetplan::place {

// The mixed-integer program of a placement table: which device runs which operator when, for a solver behind the milp_solver door.

/// `printed`: Moirai's eqs. 4-8 as they stand (solve_placement.hpp). `tight`: the same problem with a close relaxation (tight_rows.hpp).
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

namespace detail {

/// Asks of a solver what it is to solve next, and makes of its answers a schedule with a bound.
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
  bool shares_;              ///< contention::shared was asked for
  operator_schedule known_;  ///< then, as it was given
  operator_schedule best_;
  double given_bound_s_;
  placement_program program_;
  bool open_ = true;
  int overfilled_ = 0;
};

}  // namespace detail

/// Solves the program of a table, from the schedule that is known where the solver takes a start.
///
/// @param known  a schedule of the table under these rules; its makespan is the cut-off. Or none (not found()).
/// @return       feasible: proven optimal within the solver's tolerance, the bound is the makespan. stopped: the solver met a limit or was
///               wrong; then the better of `known` and what it found, and the best bound known; none found: the same without a schedule.
///               infeasible: the solver says so, and none is known. Under contention::shared transfers take turns, latencies included, and
///               the bound is that of `known`. steps: nodes of the solver's tree.
/// Complexity    exponential.  Determinism  the solver's.
/// Throws        invalid_input (a known schedule that breaks a rule).
/// Source        Moirai, section III-D, eqs. 4-8. Deviations: see solve_placement.hpp; times of the answer are worked out again from the
///               solver's integers.
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
