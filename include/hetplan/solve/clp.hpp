// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Clp of COIN-OR as an lp_solver: under the EPL, an alternative to GLPK's GPL. Only this header includes Clp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include <coin/Clp_C_Interface.h>

#include <hetplan/solve/lp.hpp>

namespace hetplan::detail {

/// Linear program in COIN-OR's column arrays: column c has terms start[c] to start[c + 1]; no limit is the largest double.
template <class Index>
struct by_columns {
  std::vector<Index> start;
  std::vector<int> row;
  std::vector<double> value, column_lower, column_upper, row_lower, row_upper;

  explicit by_columns(const lp_problem& p) : start(p.objective.size() + 1, 0) {
    for (const lp_problem::row& r : p.rows) {
      for (const auto& term : r.terms) ++start[static_cast<std::size_t>(term.first) + 1];
    }
    for (std::size_t c = 0; c < p.objective.size(); ++c) start[c + 1] += start[c];
    row.resize(static_cast<std::size_t>(start.back()));
    value.resize(row.size());
    std::vector<Index> next = start;
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
      for (const auto& [c, v] : p.rows[r].terms) {
        const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(c)]++);
        row[at] = static_cast<int>(r);
        value[at] = v;
      }
      row_lower.push_back(finite(p.rows[r].lower));
      row_upper.push_back(finite(p.rows[r].upper));
    }
    for (const double v : p.lower) column_lower.push_back(finite(v));
    for (const double v : p.upper) column_upper.push_back(finite(v));
  }

 private:
  static double finite(double v) {
    constexpr double most = std::numeric_limits<double>::max();
    return std::clamp(v, -most, most);
  }
};

}  // namespace hetplan::detail

namespace hetplan {

/// Simplex by Clp, silent: the dual method, which switches to the primal by itself where that is nearer.
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
    } catch (...) {  // CoinError, which the C headers do not declare, and std::bad_alloc
      return {};
    }
  }

 private:
  // Clp's codes of positions and results.
  enum position { free = 0, basic = 1, at_upper = 2, at_lower = 3, superbasic = 4 };
  enum result { optimal = 0, infeasible = 1, unbounded = 2, abandoned = 4 };

  using model = std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)>;

  [[nodiscard]] model load(const lp_problem& p, const detail::by_columns<CoinBigIndex>& a, const std::vector<double>& objective) const {
    model lp(Clp_newModel(), Clp_deleteModel);
    Clp_setLogLevel(lp.get(), 0);
    Clp_loadProblem(lp.get(), static_cast<int>(objective.size()), static_cast<int>(p.rows.size()), a.start.data(), a.row.data(),
                    a.value.data(), a.column_lower.data(), a.column_upper.data(), objective.data(), a.row_lower.data(), a.row_upper.data());
    Clp_setMaximumIterations(lp.get(), max_iterations);
    return lp;
  }

  [[nodiscard]] lp_solution run(const lp_problem& p, const detail::by_columns<CoinBigIndex>& a, const lp_basis* start) const {
    model lp = load(p, a, p.objective);
    if (start != nullptr) place(lp.get(), p, *start);
    Clp_dual(lp.get(), 0);
    long long iterations = Clp_numberIterations(lp.get());
    if (Clp_status(lp.get()) == infeasible || Clp_status(lp.get()) == unbounded) {
      // Clp confuses infeasible and unbounded problems, but not in a fresh model without costs.
      lp = load(p, a, std::vector<double>(p.objective.size(), 0.0));
      Clp_primal(lp.get(), 0);
      iterations += Clp_numberIterations(lp.get());
      if (Clp_status(lp.get()) == optimal) {
        Clp_chgObjCoefficients(lp.get(), p.objective.data());
        Clp_primal(lp.get(), 0);
        iterations += Clp_numberIterations(lp.get());
        if (Clp_status(lp.get()) == infeasible) Clp_setProblemStatus(lp.get(), abandoned);
      }
    }
    return read(lp.get(), p, iterations);
  }

  static void place(Clp_Simplex* lp, const lp_problem& p, const lp_basis& start) {
    for (std::size_t c = 0; c < start.columns.size(); ++c) {
      Clp_setColumnStatus(lp, static_cast<int>(c), to_clp(start.columns[c], p.lower[c], p.upper[c]));
    }
    for (std::size_t r = 0; r < start.rows.size(); ++r) {
      Clp_setRowStatus(lp, static_cast<int>(r), to_clp(start.rows[r], p.rows[r].lower, p.rows[r].upper));
    }
  }

  /// Returns Clp's code; a nonbasic position goes to a limit that exists.
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
