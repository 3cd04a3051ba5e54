// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The optimum over all placements, by mixed-integer programming: the reference for small graphs.

#include <string>
#include <vector>

#include <hetplan/place/operator_schedule.hpp>
#include <hetplan/place/placement_program.hpp>
#include <hetplan/solve/milp.hpp>

namespace HETPLAN_NAMESPACE::place {

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
/// Source        Moirai, section III-D, eqs. 4-8. Deviations: see printed_rows.hpp; times of the answer are worked out again from the
///               solver's integers.
template <milp_solver Solver>
[[nodiscard]] operator_schedule solve_placement(const placement_table& t, const placement_rules& r, const operator_schedule& known,
                                                const Solver& solver, formulation f = formulation::tight) {
  static_assert(check_milp_solver<Solver>());
  detail::placement_questions questions(t, r, known, f);
  while (questions.open()) questions.take(solve_from(solver, questions.problem(), questions.start()));
  return std::move(questions).answer();
}

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/solve_placement.ipp>
#endif
