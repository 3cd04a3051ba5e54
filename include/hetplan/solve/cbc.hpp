// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Cbc of COIN-OR as a milp_solver: under the EPL, an alternative to GLPK's GPL. Only this header includes Cbc.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <coin/Cbc_C_Interface.h>

#include <hetplan/core/error.hpp>
#include <hetplan/core/quantity.hpp>
#include <hetplan/solve/clp.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// Branch and cut by Cbc, silent, with only those of its heuristics and cuts that are sound. Clp solves the relaxation first
/// and, with the integers fixed, the other columns last.
///
/// Cbc has global options: calls from several threads wait for each other; a program's own calls must not run at the same time.
///
/// Throws       invalid_input before any call into Cbc.
/// Determinism  yes, unless `time_limit` strikes: the other limits count nodes and pivots.
struct cbc_milp {
  long long max_nodes = 100'000;
  int max_iterations = 1'000'000;  ///< pivots of each linear program that Clp solves; those inside Cbc are not limited
  seconds time_limit = seconds(std::numeric_limits<double>::infinity());  ///< of Cbc, over all attempts of `solve` together

  [[nodiscard]] milp_solution solve(const milp_problem& p) const { return solve(p, std::vector<double>{}); }

  [[nodiscard]] milp_solution solve(const milp_problem& p, const std::vector<double>& start) const {
    check_milp_problem(p);
    if (!(time_limit.value() >= 0)) throw invalid_input("cbc_milp: time_limit = " + to_text(time_limit.value()) + " s; expected >= 0");
    const detail::time_left left(time_limit);
    const clp_lp rest{.max_iterations = max_iterations};
    const milp_solution begun = detail::begin_with(rest, p, start);
    return detail::no_worse_than(begun, detail::solve_exactly(rest, p, [&](const milp_problem& q, double tolerance) {
                                   return attempt(q, tolerance, left, begun.x);
                                 }));
  }

 private:
  [[nodiscard]] milp_solution attempt(const milp_problem& p, double tolerance, const detail::time_left& left,
                                      const std::vector<double>& start) const {
    const lp_solution relaxed = clp_lp{.max_iterations = max_iterations}.solve(p.relaxation);
    if (relaxed.status != lp_status::optimal) return detail::to_milp(lp_solution(relaxed));
    const detail::by_columns<CoinBigIndex> columns(p.relaxation);
    static std::mutex cbc_is_in_use;
    const std::lock_guard lock(cbc_is_in_use);
    try {
      return run(p, columns, relaxed.objective, tolerance, left(), start);
    } catch (...) {  // CoinError, which the C headers do not declare, and std::bad_alloc
      return {.bound = relaxed.objective};
    }
  }

  [[nodiscard]] milp_solution run(const milp_problem& p, const detail::by_columns<CoinBigIndex>& a, double relaxed, double tolerance,
                                  seconds limit, const std::vector<double>& start) const {
    const std::unique_ptr<Cbc_Model, void (*)(Cbc_Model*)> owner(Cbc_newModel(), Cbc_deleteModel);
    Cbc_Model* model = owner.get();
    const lp_problem& lp = p.relaxation;
    Cbc_loadProblem(model, static_cast<int>(lp.objective.size()), static_cast<int>(lp.rows.size()), a.start.data(), a.row.data(),
                    a.value.data(), a.column_lower.data(), a.column_upper.data(), lp.objective.data(), a.row_lower.data(),
                    a.row_upper.data());
    for (const int c : p.integers) Cbc_setInteger(model, c);
    Cbc_setLogLevel(model, 0);
    Cbc_setParameter(model, "log", "0");
    Cbc_setParameter(model, "threads", "0");
    Cbc_setParameter(model, "timeMode", "elapsed");
    Cbc_setParameter(model, "integerTolerance", to_text(tolerance).c_str());
    // With these options and columns without limits, Cbc 2.10 loses the optimum of about one program in a thousand.
    for (const char* unsound : {"preprocess", "mixedIntegerRoundingCuts", "flowCoverCuts", "twoMirCuts"}) {
      Cbc_setParameter(model, unsound, "off");
    }
    Cbc_setParameter(model, "feasibilityPump", "off");  // aborts in Clp's assertions, once in some thousand programs
    Cbc_setParameter(model, "increment", "1e-9");       // the default drops slightly better solutions
    Cbc_setMaximumNodes(model, static_cast<int>(std::clamp<long long>(max_nodes, 0, std::numeric_limits<int>::max())));
    if (is_finite(limit)) Cbc_setMaximumSeconds(model, limit.value());
    if (!start.empty()) Cbc_setInitialSolution(model, start.data());
    Cbc_solve(model);

    milp_solution s;
    s.nodes = Cbc_getNodeCount(model);
    const double* x = Cbc_bestSolution(model);
    if (x != nullptr) {
      s.status = Cbc_isProvenOptimal(model) != 0 ? milp_status::optimal : milp_status::feasible;
      s.objective = Cbc_getObjValue(model);
      s.x.assign(x, x + lp.objective.size());
    } else if (Cbc_isProvenInfeasible(model) != 0) {
      s.status = milp_status::infeasible;
      return s;
    }
    const double open = Cbc_getBestPossibleObjValue(model);
    s.bound = std::abs(open) < 1e50 ? std::max(relaxed, open) : relaxed;  // larger values: no bound is known
    return s;
  }
};

static_assert(check_milp_solver<cbc_milp>() && starts_milp<cbc_milp>);

}  // namespace hetplan
