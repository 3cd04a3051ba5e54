// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Mixed-integer linear programs: the problem, the answer, and the door for solvers.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// The relaxation's problem, where the columns of `integers` take integers only.
struct milp_problem {
  lp_problem relaxation;
  std::vector<int> integers;  ///< columns, each at most once
};

/// `feasible`: a limit was hit, x is the best found so far. `unsolved`: a limit was hit and nothing found.
/// `unbounded`: the relaxation is; whether an integer solution exists at all is then left open.
enum class milp_status { optimal, feasible, infeasible, unbounded, unsolved };

struct milp_solution {
  milp_status status = milp_status::unsolved;
  double objective = 0;                                     ///< of x
  double bound = -std::numeric_limits<double>::infinity();  ///< no solution is below it; the objective where optimal
  std::vector<double> x = {};                               ///< empty unless optimal or feasible; `integers` exactly so
  long long nodes = 0;                                      ///< of the search tree
};

template <class S>
concept solves_milp = requires(const S& s, const milp_problem& p) {
  { s.solve(p) } -> std::same_as<milp_solution>;  // deterministic
};

/// The answer to a linear program some of whose columns take integers only.
///
/// * Columns of `integers` are exact integers, and `x` keeps its limits beside them: a solver's 0.999999 times a large coefficient is no
///   answer.
/// * Deterministic as long as its limits count nodes and pivots; a limit of time, where there is one, is not.
/// * `check_milp_problem` throws `invalid_input` for what would choke a solver. `solve_from` starts from a solution where that is
///   offered.
///
/// Ships: `no_milp` (leaves everything unsolved), `glpk_milp` (solve/glpk.hpp), `cbc_milp` (solve/cbc.hpp; calls from several threads
/// wait for each other).
template <class S>
concept milp_solver = solves_milp<S>;

/// A refinement: begins with a solution, such as a heuristic's. A start is a hint: only its integers count, and where the other columns
/// cannot be solved for beside them it is ignored. It changes how long the answer takes, never its status or objective; where a limit
/// ends the search, the answer is no worse than the start.
template <class S>
concept starts_milp = milp_solver<S> && requires(const S& s, const milp_problem& p, const std::vector<double>& start) {
  { s.solve(p, start) } -> std::same_as<milp_solution>;  // deterministic
};
/// Takes a start in some way: a slip in the rest of the signature is an error, not "absent".
template <class S>
concept takes_milp_start = requires(S& s, const milp_problem& p, std::vector<double>& start) { s.solve(p, start); };

template <class S>
consteval bool check_milp_solver() {
  static_assert(solves_milp<S>, "milp_solver needs: hetplan::milp_solution solve(const hetplan::milp_problem&) const");
  static_assert(starts_milp<S> || !takes_milp_start<S>,
                "a milp_solver's start is: hetplan::milp_solution solve(const hetplan::milp_problem&, const std::vector<double>&) const");
  return milp_solver<S>;
}

/// Solves from `start`, a value for every column, where the solver can, else from nothing.
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

/// For those who link no solver: leaves every problem unsolved.
struct no_milp {
  [[nodiscard]] milp_solution solve(const milp_problem&) const { return {}; }
};
static_assert(check_milp_solver<no_milp>());

/// Throws invalid_input for what a solver would choke on: all that check_lp_problem finds, and integer columns that do
/// not exist or are named twice.
void check_milp_problem(const milp_problem& p);

namespace detail {

/// Moves the limits of integer columns inward to integers; false if that leaves one of them none. A limit that misses an
/// integer by no more than rounding counts as it.
[[nodiscard]] bool round_limits(milp_problem& p);

/// A solver's integers are such within a tolerance, and what is over may carry the rest, times any coefficient. Rounds
/// them and solves for the other columns beside them; false if the claimed optimum does not survive that.
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

/// Has a start a value for every column, and integers within the limits of theirs?
[[nodiscard]] bool could_start(const milp_problem& p, const std::vector<double>& start);

/// The solution that a start's integers lead to; unsolved where there is none.
template <lp_solver Lp>
[[nodiscard]] milp_solution begin_with(const Lp& lp, const milp_problem& p, const std::vector<double>& start) {
  if (!could_start(p, start)) return {};
  milp_solution s{.status = milp_status::feasible, .x = start};
  static_cast<void>(settle(lp, p, s));
  return s;
}

/// What a solver says that began with `begun`, or that where the solver found nothing better. It also wins over a solver that denies it.
[[nodiscard]] milp_solution no_worse_than(milp_solution begun, milp_solution s);

/// What is left of a limit on the wall clock, which runs from its construction on.
class time_left {
 public:
  explicit time_left(seconds limit) : limit_(limit) {}
  [[nodiscard]] seconds operator()() const;

 private:
  seconds limit_;
  stopwatch clock_;
};

/// Asks `attempt(problem, tolerance)` with ever smaller tolerances until its integers survive being rounded. Where a limit ends an
/// attempt without any, the answer is the best one before.
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
#include <hetplan/solve/milp.ipp>
#endif
