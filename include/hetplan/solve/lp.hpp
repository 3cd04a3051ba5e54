// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Linear programs: the problem, the solution, and the concept of solvers.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <hetplan/core/erased.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
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

// Mixed-integer linear programs: the problem, the solution, and the concept of solvers.

/// Linear program in which the columns of `integers` take integers only.
struct milp_problem {
  lp_problem relaxation;
  std::vector<int> integers;  ///< column indices, each at most once
};

/// Status of a solution. `feasible`: a limit ended the search, x is the best found so far. `unsolved`: a limit ended the search before
/// anything was found. `unbounded`: the relaxation is unbounded; an integer solution need not exist.
enum class milp_status { optimal, feasible, infeasible, unbounded, unsolved };

struct milp_solution {
  milp_status status = milp_status::unsolved;
  double objective = 0;
  double bound = -std::numeric_limits<double>::infinity();  ///< lower bound of all solutions; the objective if optimal
  std::vector<double> x = {};                               ///< empty unless optimal or feasible; exact integers in `integers`
  long long nodes = 0;                                      ///< of the search tree
};

template <class S>
concept solves_milp = requires(const S& s, const milp_problem& p) {
  { s.solve(p) } -> std::same_as<milp_solution>;  // deterministic
};

/// Solver of linear programs in which some columns take integers only.
///
/// * Columns of `integers` are exact integers, and `x` keeps its limits with them: 0.999999 times a large coefficient is no solution.
/// * Deterministic as long as its limits count nodes and pivots; a time limit is not deterministic.
/// * `check_milp_problem` throws `invalid_input` for problems that would break a solver. `solve_from` passes on a start if possible.
///
/// Ships: `no_milp` (leaves everything unsolved), `glpk_milp` (solve/glpk.hpp), `cbc_milp` (solve/cbc.hpp; one call at a time).
template <class S>
concept milp_solver = solves_milp<S>;

/// A refinement: starts from a solution, such as a heuristic's. The start is a hint: only its integers count, and it is ignored if the
/// other columns cannot be solved for with them. A start changes the time of the solution, never its status or objective; if a limit
/// ends the search, the solution is no worse than the start.
template <class S>
concept starts_milp = milp_solver<S> && requires(const S& s, const milp_problem& p, const std::vector<double>& start) {
  { s.solve(p, start) } -> std::same_as<milp_solution>;  // deterministic
};
/// True if a member `solve` takes a start in some form: a slip in its signature is then an error, not "absent".
template <class S>
concept takes_milp_start = requires(S& s, const milp_problem& p, std::vector<double>& start) { s.solve(p, start); };

template <class S>
consteval bool check_milp_solver() {
  static_assert(solves_milp<S>, "milp_solver needs: hetplan::milp_solution solve(const hetplan::milp_problem&) const");
  static_assert(starts_milp<S> || !takes_milp_start<S>,
                "a milp_solver's start is: hetplan::milp_solution solve(const hetplan::milp_problem&, const std::vector<double>&) const");
  return milp_solver<S>;
}

/// Solves from `start`, one value per column, if the solver accepts one, else from scratch.
template <milp_solver S>
[[nodiscard]] milp_solution solve_from(const S& solver, const milp_problem& p, const std::vector<double>& start) {
  static_assert(check_milp_solver<S>());
  if constexpr (starts_milp<S>) {
    return solver.solve(p, start);
  } else {
    static_cast<void>(start);
    return solver.solve(p);
  }
}

/// Solver for programs that link none: leaves every problem unsolved.
struct no_milp {
  [[nodiscard]] milp_solution solve(const milp_problem&) const { return {}; }
};
static_assert(check_milp_solver<no_milp>());

/// Throws invalid_input for problems that would break a solver: as check_lp_problem, and unknown or repeated integer columns.
void check_milp_problem(const milp_problem& p);

namespace detail {

/// Rounds the limits of integer columns inward, with a tolerance for rounding errors. Returns false if a column has no integer left.
[[nodiscard]] bool round_limits(milp_problem& p);

/// Rounds a solver's integers and solves for the other columns with them fixed. A solver's integers have a tolerance, and the excess
/// times a large coefficient may satisfy other rows. Returns false if the claimed optimum does not survive rounding.
template <lp_solver Lp>
[[nodiscard]] bool settle(const Lp& lp, const milp_problem& p, milp_solution& s) {
  lp_problem beside = p.relaxation;
  for (const int column : p.integers) {
    const auto c = static_cast<std::size_t>(column);
    s.x[c] = beside.lower[c] = beside.upper[c] = std::round(s.x[c]);
  }
  const bool optimal = s.status == milp_status::optimal;
  const double claimed = s.objective;
  const lp_solution rest = lp.solve(beside);
  if (rest.status != lp_status::optimal) {
    s = {.bound = optimal ? claimed : s.bound, .nodes = s.nodes};
    return !optimal;
  }
  std::vector<double> x = rest.x;
  for (const int c : p.integers) x[static_cast<std::size_t>(c)] = s.x[static_cast<std::size_t>(c)];
  s.x = std::move(x);
  s.objective = std::inner_product(s.x.begin(), s.x.end(), p.relaxation.objective.begin(), 0.0);
  const bool kept = !optimal || s.objective <= claimed + 1e-6 * (1 + std::abs(claimed));
  if (!kept) s.status = milp_status::feasible;
  s.bound = std::min(s.objective, !optimal ? s.bound : kept ? s.objective : claimed);
  return kept;
}

[[nodiscard]] milp_solution to_milp(lp_solution&& s);

/// Returns whether a start has a value for every column, and integers within their columns' limits.
[[nodiscard]] bool could_start(const milp_problem& p, const std::vector<double>& start);

/// Returns the solution with a start's integers; unsolved if there is none.
template <lp_solver Lp>
[[nodiscard]] milp_solution begin_with(const Lp& lp, const milp_problem& p, const std::vector<double>& start) {
  if (!could_start(p, start)) return {};
  milp_solution s{.status = milp_status::feasible, .x = start};
  static_cast<void>(settle(lp, p, s));
  return s;
}

/// Returns the solution `s` of a solver that began with `begun`, or `begun` if `s` is worse or denies that there is a solution.
[[nodiscard]] milp_solution no_worse_than(milp_solution begun, milp_solution s);

/// Remaining time of a wall-clock limit that runs from construction.
class time_left {
 public:
  explicit time_left(seconds limit) : limit_(limit) {}
  [[nodiscard]] seconds operator()() const;

 private:
  seconds limit_;
  stopwatch clock_;
};

/// Calls `attempt(problem, tolerance)` with ever smaller tolerances until its integers survive rounding. If a limit ends an attempt
/// without a solution, the one before is returned.
template <lp_solver Lp, class Attempt>
[[nodiscard]] milp_solution solve_exactly(const Lp& lp, milp_problem p, const Attempt& attempt) {
  if (p.integers.empty()) return to_milp(lp.solve(p.relaxation));
  milp_solution s;
  if (!round_limits(p)) {
    s.status = milp_status::infeasible;
    return s;
  }
  long long nodes = 0;
  milp_solution before;
  for (const double tolerance : {1e-6, 1e-8, 1e-10}) {
    s = attempt(std::as_const(p), tolerance);
    s.nodes = nodes += s.nodes;
    if (s.status == milp_status::unsolved && before.status == milp_status::feasible) {
      before.nodes = nodes;
      return before;
    }
    if (s.status != milp_status::optimal && s.status != milp_status::feasible) {
      s.x.clear();
      break;
    }
    if (settle(lp, p, s)) break;
    if (s.status == milp_status::feasible) before = s;
  }
  return s;
}

}  // namespace detail
}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/solve/lp.ipp>
#endif
