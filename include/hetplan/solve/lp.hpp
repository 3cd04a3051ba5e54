// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs: the problem, the solution, and the concept of solvers.

#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan {

/// Linear program: minimise objective . x  subject to  row.lower <= row . x <= row.upper,  lower <= x <= upper; sparse rows.
struct lp_problem {
  struct row {
    std::vector<std::pair<int, double>> terms;  ///< (column, coefficient), each column at most once
    double lower = -std::numeric_limits<double>::infinity();
    double upper = std::numeric_limits<double>::infinity();
  };
  std::vector<double> objective;
  std::vector<double> lower;  ///< by column
  std::vector<double> upper;
  std::vector<row> rows;

  /// Adds a column. Returns its index.
  int add_column(double cost, double low = 0, double high = std::numeric_limits<double>::infinity());
};

/// Status of a solution. `unsolved`: the solver's limits ended the search; x and duals, where present, are its last ones.
enum class lp_status { optimal, infeasible, unbounded, unsolved };

/// Position of a column, or of a row's activity, at its limits. `free`: at 0 without limits; a fixed nonbasic one is `at_lower`.
enum class lp_position : std::uint8_t { basic, at_lower, at_upper, free };

/// Basis: the position of every column and row; as many are basic as there are rows. When a problem grows, a basis stays one if new
/// columns are nonbasic and new rows are basic.
struct lp_basis {
  std::vector<lp_position> columns, rows;
  friend bool operator==(const lp_basis&, const lp_basis&) = default;
};

struct lp_solution {
  lp_status status = lp_status::unsolved;
  double objective = 0;
  std::vector<double> x;
  std::vector<double> row_duals;  ///< d objective / d row activity; <= 0 where an upper limit binds
  lp_basis basis = {};            ///< last basis; empty if the solver reports none
  long long iterations = 0;       ///< pivots
};

template <class S>
concept solves_lp = requires(const S& s, const lp_problem& p) {
  { s.solve(p) } -> std::same_as<lp_solution>;  // deterministic
};
/// Solver of linear programs: minimises objective . x within limits of columns and rows.
///
/// * The bound on a plan uses only the duals, as a proposal: it stays valid whatever a solver returns, but poor duals make it weaker.
///   `relax_placement` trusts `optimal` and `infeasible`. `unsolved` without duals is always allowed.
/// * `check_lp_problem` throws `invalid_input` for problems that would break a solver. `solve_from` passes on a start if possible.
/// * Called from several threads at once where planners use threads.
///
/// Ships: `no_lp` (the default: leaves everything unsolved), `glpk_lp` (solve/glpk.hpp, the only header that needs GLPK; licence:
/// docs/platforms.md), `clp_lp` (solve/clp.hpp, by COIN-OR's Clp), `any_lp_solver` (chosen at run time). GLPK and Clp start from a
/// basis, also from each other's.
template <class S>
concept lp_solver = solves_lp<S>;

/// A refinement: starts from a basis, such as that of a problem solved before. The start is a hint: an invalid basis is repaired or
/// ignored. A start changes the time of the solution, never its status or objective.
template <class S>
concept warm_starts_lp = lp_solver<S> && requires(const S& s, const lp_problem& p, const lp_basis& start) {
  { s.solve(p, start) } -> std::same_as<lp_solution>;  // deterministic
};
/// True if a member `solve` takes a start in some form: a slip in its signature is then an error, not "absent".
template <class S>
concept takes_lp_start = requires(S& s, const lp_problem& p, lp_basis& start) { s.solve(p, start); };

template <class S>
consteval bool check_lp_solver() {
  static_assert(solves_lp<S>, "lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const");
  static_assert(warm_starts_lp<S> || !takes_lp_start<S>,
                "an lp_solver's warm start is: hetplan::lp_solution solve(const hetplan::lp_problem&, const hetplan::lp_basis&) const");
  return lp_solver<S>;
}

/// Solves from `start` if the solver accepts one, else from scratch.
template <lp_solver S>
[[nodiscard]] lp_solution solve_from(const S& solver, const lp_problem& p, const lp_basis& start) {
  static_assert(check_lp_solver<S>());
  if constexpr (warm_starts_lp<S>) {
    return solver.solve(p, start);
  } else {
    static_cast<void>(start);
    return solver.solve(p);
  }
}

/// Solver for programs that link none: leaves every problem unsolved.
struct no_lp {
  [[nodiscard]] lp_solution solve(const lp_problem&) const { return {}; }
};
static_assert(check_lp_solver<no_lp>());

/// Throws invalid_input for problems that would break a solver: bad index, duplicate term, NaN, limits that no number satisfies.
void check_lp_problem(const lp_problem& p);

/// Returns whether a basis has a position for each column and row, and as many basic ones as rows. Singularity is not checked.
[[nodiscard]] bool could_be_basis(const lp_basis& b, const lp_problem& p);

/// Type-erased solver, held by value and shared by copies. If empty or made of `no_lp`, it leaves every problem unsolved.
class any_lp_solver {
 public:
  any_lp_solver() = default;
  any_lp_solver(no_lp) {}
  template <class S>
    requires(!std::same_as<S, any_lp_solver>)
  any_lp_solver(S solver) {
    static_assert(check_lp_solver<S>());
    if constexpr (lp_solver<S>)
      solver_ = {std::move(solver),
                 {.solve = [](void* s, auto... a) { return as<const S>(s).solve(a...); },
                  .solve_from = [](void* s, auto... a) { return solve_from(as<const S>(s), a...); }}};
  }

  [[nodiscard]] bool exists() const { return bool(solver_); }
  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return solver_ ? solver_.call(&calls::solve, p) : lp_solution{}; }
  /// Solves from scratch if the held solver accepts no start.
  [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const {
    return solver_ ? solver_.call(&calls::solve_from, p, start) : lp_solution{};
  }

 private:
  struct calls {
    lp_solution (*solve)(void*, const lp_problem&);
    lp_solution (*solve_from)(void*, const lp_problem&, const lp_basis&);
  };
  erased<calls> solver_;
};

static_assert(check_lp_solver<any_lp_solver>());

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/solve/lp.ipp>
#endif
