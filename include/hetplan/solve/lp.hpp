// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs: the problem, the answer, and the door for solvers.

#include <concepts>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/version.hpp>

namespace hetplan {

/// minimise objective . x  subject to  row.lower <= row . x <= row.upper,  lower <= x <= upper; sparse rows.
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

  /// Adds a column; its index.
  int add_column(double cost, double low = 0, double high = std::numeric_limits<double>::infinity());
};

/// `unsolved`: no answer within the solver's limits; x and duals, where present, are the last it had.
enum class lp_status { optimal, infeasible, unbounded, unsolved };

/// Where a column, or a row's activity, stands: `free` is at 0 without limits; a fixed one that is not basic is at_lower.
enum class lp_position : std::uint8_t { basic, at_lower, at_upper, free };

/// A vertex, by position: as many are basic as there are rows. Where a problem grows, a new column that is not basic and
/// a new row that is basic keep a basis one.
struct lp_basis {
  std::vector<lp_position> columns, rows;
  friend bool operator==(const lp_basis&, const lp_basis&) = default;
};

struct lp_solution {
  lp_status status = lp_status::unsolved;
  double objective = 0;
  std::vector<double> x;
  std::vector<double> row_duals;  ///< d objective / d row activity; <= 0 where an upper limit binds
  lp_basis basis = {};            ///< the last one; empty if the solver tells none
  long long iterations = 0;       ///< pivots
};

template <class S>
concept solves_lp = requires(const S& s, const lp_problem& p) {
  { s.solve(p) } -> std::same_as<lp_solution>;  // deterministic
};
/// The answer to a linear program: minimise objective . x within limits of columns and rows.
///
/// * The bound on a plan uses the duals only, as a proposal: whatever a solver answers, the bound stays valid; a poor answer makes it
///   weaker. `relax_placement` believes `optimal` and `infeasible`. `unsolved` without duals is always allowed.
/// * `check_lp_problem` throws `invalid_input` for what would choke a solver. `solve_from` starts from a basis where that is offered.
/// * Called from several threads at once where planners have threads.
///
/// Ships: `no_lp` (the default: leaves everything unsolved), `glpk_lp` (solve/glpk.hpp, the only header that needs GLPK; licence:
/// docs/platforms.md), `clp_lp` (solve/clp.hpp, by COIN-OR's Clp), `any_lp_solver` (chosen at run time). Both solvers start from a
/// basis, also from each other's.
template <class S>
concept lp_solver = solves_lp<S>;

/// A refinement: starts from a basis, which a problem solved before may have left. A start is a hint: one that is no basis
/// of this problem is mended or ignored, and changes how long the answer takes, never its status or objective.
template <class S>
concept warm_starts_lp = lp_solver<S> && requires(const S& s, const lp_problem& p, const lp_basis& start) {
  { s.solve(p, start) } -> std::same_as<lp_solution>;  // deterministic
};
/// Takes a start in some way: a slip in the rest of the signature is an error, not "absent".
template <class S>
concept takes_lp_start = requires(S& s, const lp_problem& p, lp_basis& start) { s.solve(p, start); };

template <class S>
consteval bool check_lp_solver() {
  static_assert(solves_lp<S>, "lp_solver needs: hetplan::lp_solution solve(const hetplan::lp_problem&) const");
  static_assert(warm_starts_lp<S> || !takes_lp_start<S>,
                "an lp_solver's warm start is: hetplan::lp_solution solve(const hetplan::lp_problem&, const hetplan::lp_basis&) const");
  return lp_solver<S>;
}

/// Solves from `start` where the solver can, else from nothing.
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

/// For those who link no solver: leaves every problem unsolved.
struct no_lp {
  [[nodiscard]] lp_solution solve(const lp_problem&) const { return {}; }
};
static_assert(check_lp_solver<no_lp>());

/// Throws invalid_input for what a solver would choke on: bad index, duplicate term, NaN, limits that no number keeps.
void check_lp_problem(const lp_problem& p);

/// As many positions as the problem has columns and rows, and as many basic ones as rows: what can be told of a basis
/// without factorizing it.
[[nodiscard]] bool could_be_basis(const lp_basis& b, const lp_problem& p);

// A linear-program solver chosen at run time.

/// Holds any solver by value; copies share it. Of `no_lp`, or nothing, it leaves every problem unsolved.
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

  /// Is there a solver at all?
  [[nodiscard]] bool exists() const { return bool(solver_); }
  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return solver_ ? solver_->solve(solver_.get(), p) : lp_solution{}; }
  /// From nothing where the solver that it holds takes no start.
  [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const {
    return solver_ ? solver_->solve_from(solver_.get(), p, start) : lp_solution{};
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
