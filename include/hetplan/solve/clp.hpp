// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Clp of COIN-OR behind the lp_solver door, for those who cannot take GLPK's licence: Clp is under the EPL. Only this header
/// includes it.

#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include <coin/Clp_C_Interface.h>

#include <hetplan/solve/by_columns.hpp>
#include <hetplan/solve/lp.hpp>

namespace hetplan {

/// Simplex by Clp, silent: dual, which by itself goes on with the primal where that is nearer.
///
/// Throws       invalid_input before any call into Clp.
/// Determinism  yes: limited in iterations, never in time.
struct clp_lp {
  int max_iterations = 100'000;

  [[nodiscard]] lp_solution solve(const lp_problem& p) const { return solve(p, lp_basis{}); }

  [[nodiscard]] lp_solution solve(const lp_problem& p, const lp_basis& start) const {
    check_lp_problem(p);
    const detail::by_columns<CoinBigIndex> columns(p);
    try {
      return run(p, columns, could_be_basis(start, p) ? &start : nullptr);
    } catch (...) {  // CoinError, which no header of C tells of, and std::bad_alloc
      return {};
    }
  }

 private:
  // Clp's numbers for positions and for results.
  enum position { free = 0, basic = 1, at_upper = 2, at_lower = 3, superbasic = 4 };
  enum result { optimal = 0, infeasible = 1, unbounded = 2, abandoned = 4 };

  [[nodiscard]] lp_solution run(const lp_problem& p, const detail::by_columns<CoinBigIndex>& a, const lp_basis* start) const {
    const std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> owner(Clp_newModel(), Clp_deleteModel);
    Clp_Simplex* lp = owner.get();
    Clp_setLogLevel(lp, 0);
    const int columns = static_cast<int>(p.objective.size()), rows = static_cast<int>(p.rows.size());
    Clp_loadProblem(lp, columns, rows, a.start.data(), a.row.data(), a.value.data(), a.column_lower.data(), a.column_upper.data(),
                    p.objective.data(), a.row_lower.data(), a.row_upper.data());
    if (start != nullptr) {
      for (int c = 0; c < columns; ++c) {
        const auto i = static_cast<std::size_t>(c);
        Clp_setColumnStatus(lp, c, to_clp(start->columns[i], p.lower[i], p.upper[i]));
      }
      for (int r = 0; r < rows; ++r) {
        const auto i = static_cast<std::size_t>(r);
        Clp_setRowStatus(lp, r, to_clp(start->rows[i], p.rows[i].lower, p.rows[i].upper));
      }
    }
    Clp_setMaximumIterations(lp, max_iterations);
    Clp_dual(lp, 0);
    long long iterations = Clp_numberIterations(lp);
    if (Clp_status(lp) == infeasible || Clp_status(lp) == unbounded) {  // Clp takes one for the other: without costs it cannot
      const std::vector<double> nothing(p.objective.size(), 0.0);
      Clp_chgObjCoefficients(lp, nothing.data());
      Clp_dual(lp, 0);
      iterations += Clp_numberIterations(lp);
      if (Clp_status(lp) == optimal) {
        Clp_chgObjCoefficients(lp, p.objective.data());
        Clp_primal(lp, 0);
        iterations += Clp_numberIterations(lp);
        if (Clp_status(lp) == infeasible) Clp_setProblemStatus(lp, abandoned);
      }
    }
    return read(lp, p, iterations);
  }

  /// Not basic is at a limit that exists.
  static int to_clp(lp_position p, double low, double high) {
    if (p == lp_position::basic) return basic;
    if (std::isinf(low)) return std::isinf(high) ? free : at_upper;
    return p == lp_position::at_upper && !std::isinf(high) ? at_upper : at_lower;
  }
  static lp_position from_clp(int status) {
    switch (status) {
      case basic: return lp_position::basic;
      case at_upper: return lp_position::at_upper;
      case free:
      case superbasic: return lp_position::free;
      default: return lp_position::at_lower;
    }
  }

  static lp_solution read(Clp_Simplex* lp, const lp_problem& p, long long iterations) {
    lp_solution s;
    switch (Clp_status(lp)) {
      case optimal: s.status = lp_status::optimal; break;
      case infeasible: s.status = lp_status::infeasible; break;
      case unbounded: s.status = lp_status::unbounded; break;
      default: break;
    }
    s.objective = Clp_objectiveValue(lp);
    s.iterations = iterations;
    const double *x = Clp_primalColumnSolution(lp), *dual = Clp_dualRowSolution(lp);
    s.x.assign(x, x + p.objective.size());
    s.row_duals.assign(dual, dual + p.rows.size());
    for (std::size_t c = 0; c < p.objective.size(); ++c) s.basis.columns.push_back(from_clp(Clp_getColumnStatus(lp, static_cast<int>(c))));
    for (std::size_t r = 0; r < p.rows.size(); ++r) s.basis.rows.push_back(from_clp(Clp_getRowStatus(lp, static_cast<int>(r))));
    return s;
  }
};

static_assert(check_lp_solver<clp_lp>() && warm_starts_lp<clp_lp>);

}  // namespace hetplan
